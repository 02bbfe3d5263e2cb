# Writes the manual and the completion scripts as the program prints them, under OUT (PREFIX/share).
# usage: cmake -DPROGRAM=build/release/bin/longhaul -DOUT=build/release/share -P cmake/longhaul_manual.cmake

function(write_output file)
  get_filename_component(directory ${OUT}/${file} DIRECTORY)
  file(MAKE_DIRECTORY ${directory})
  execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_FILE ${OUT}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

write_output(man/man1/longhaul.1 man)
write_output(bash-completion/completions/longhaul completion bash)
write_output(zsh/site-functions/_longhaul completion zsh)
write_output(fish/vendor_completions.d/longhaul.fish completion fish)
