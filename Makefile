# The two commands are `make demo` and `make test`; `make help` lists the rest.
# Every target installs what is missing first and is safe to repeat: with nothing changed it takes seconds.
# Ninja compiles on all cores, except files that include torch: at most two at once (1 GB each, see
# cmake/longhaul_torch.cmake).

FUZZ_SECONDS ?= 60
SOAK_MINUTES ?= 60
SOAK_SEED ?= 1
BIN := build/release/bin
PREFIX ?= /usr/local

.DEFAULT_GOAL := build
.PHONY: build install demo test test-slow test-agreement test-web pictures papers soak lint bench fuzz fuzz-coverage asan tsan core clean deps help

# configure(preset): Ninja runs CMake again by itself when a CMake file changes, but does not know of the presets.
configure = @test build/$(1)/build.ninja -nt CMakePresets.json || cmake --preset $(1)

build: deps ## build everything into build/release (default)
	$(call configure,release)
	@cmake --build --preset release

install: build ## build, then install programs, libraries, scenarios, man page and completion below PREFIX (/usr/local)
	cmake --install build/release --prefix $(PREFIX)

demo: build ## build, then rehearse: D-SGD against the planner over an emulated WAN
	$(BIN)/longhaul rehearse

test: build ## build, then run all tests but the slow ones and those of test-agreement
	ctest --preset release

test-slow: build ## build, then run the tests that take over 10 s each
	ctest --test-dir build/release -L '^slow$$' --output-on-failure --no-tests=ignore

test-agreement: build ## build, then compare lab and rehearsal, which must agree within 10 %; needs the machine for itself
	ctest --test-dir build/release -L '^agreement$$' --verbose --no-tests=error

test-web: build ## install Chromium, open the report in it and check what it draws
	@tools/install_deps.sh web
	tests/web/report_test.py $(BIN)/longhaul_report_sample build/web

pictures: build ## run the comparison of README.md (about 10 minutes), write its table and pictures, photograph the demo's report
	@tools/install_deps.sh web
	bench/pictures.py $(BIN)/longhaul

papers: build ## run the rows of docs/papers.md (hours) and rewrite its figures; goes on where it was stopped
	bench/papers.py $(BIN)/longhaul

soak: build ## rehearse for SOAK_MINUTES (60) with random faults, then check that nothing is lost
	rm -rf build/soak
	$(BIN)/longhaul rehearse smoke --recipe deco --for $(SOAK_MINUTES)min --fault-seed $(SOAK_SEED) --books --out build/soak \
	  --set train.steps=1000000 --set eval.every=10 --set target.value=0.7
	tests/e2e/books.py build/soak/deco-1/books

lint: deps ## formatting, layering and clang-tidy; tools/lint.sh --fix repairs formatting
	tools/lint.sh --check

bench: build ## run the micro-benchmarks
	@for program in $(BIN)/*_bench; do $$program || exit 1; done

fuzz: deps ## run each fuzz target for FUZZ_SECONDS (60), then print decoder coverage
	$(call configure,fuzz)
	@cmake --build --preset fuzz
	tools/fuzz.sh $(FUZZ_SECONDS)

fuzz-coverage: deps ## what the inputs of the fuzz targets reach in the decoders, and what not
	$(call configure,fuzz)
	@cmake --build --preset fuzz
	tools/fuzz_coverage.py --lines

asan tsan: deps ## tests under address+undefined sanitizers; those with several threads under the thread sanitizer
	$(call configure,$@)
	@cmake --build --preset $@
	ctest --preset $@

core: deps ## the libraries below longhaul/ only, without torch, into build/core
	@test build/core/build.ninja -nt CMakePresets.json || cmake --preset release -B build/core -DLONGHAUL_TORCH=OFF
	@cmake --build build/core --target longhaul_core

clean: ## remove build/
	rm -rf build

deps:
	@tools/install_deps.sh

help: ## this list
	@sed -n 's/^\([a-z][a-z -]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12
