// A source of its own: gRPC's headers define macros of the same names as ours.
#include "tests/grpc/compressing_peer.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "proto/longhaul.grpc.pb.h"

namespace longhaul {
namespace {

struct CompressingPeer {
  grpc::ClientContext context;
  std::unique_ptr<v1::Hub::Stub> stub;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Frame, v1::Frame>> stream;
};

}  // namespace

std::shared_ptr<void> send_compressed(int port) {
  auto peer = std::make_shared<CompressingPeer>();
  peer->stub = v1::Hub::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  peer->context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  peer->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  peer->stream = peer->stub->Connect(&peer->context);
  v1::Frame frame;
  frame.mutable_chunk()->set_data(std::string(100'000, 'x'));
  (void)peer->stream->Write(frame);
  return peer;
}

}  // namespace longhaul
