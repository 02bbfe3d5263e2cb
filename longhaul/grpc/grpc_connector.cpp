#include <grpcpp/grpcpp.h>

#include <utility>

#include "longhaul/grpc/connection_error.h"
#include "longhaul/grpc/grpc_stream.h"
#include "longhaul/grpc/grpc_transport.h"
#include "proto/longhaul.grpc.pb.h"

namespace longhaul {
namespace {

// Deletes itself when gRPC is done with it.
class ClientReactor final : public grpc::ClientBidiReactor<Frame, Frame> {
 public:
  ClientReactor(std::shared_ptr<grpc::Channel> channel, StreamListener listener,
                std::string address, bool is_tls)
      : stream_(std::make_shared<GrpcStream<ClientReactor>>(*this)),
        channel_(std::move(channel)),
        stub_(channel_),
        listener_(std::move(listener)),
        address_(std::move(address)),
        is_tls_(is_tls) {}

  StreamPtr start() {
    StreamPtr stream = handle_of(stream_);
    stub_.async()->Connect(&context_, this);
    AddHold();  // for reads and writes that start outside of its own callbacks
    StartCall();
    return stream;
  }

  void start_read() { StartRead(&incoming_); }
  void start_write(Frame frame) {
    outgoing_ = std::move(frame);
    StartWrite(&outgoing_);
  }
  void cancel() { context_.TryCancel(); }
  void finish() {
    context_.TryCancel();  // after the hub has ended the call this changes nothing
    RemoveHold();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      has_heard_ = true;
      listener_(std::move(incoming_));
    } else {
      stream_->close();
    }
  }
  void OnWriteDone(bool ok) override {
    if (stream_->written(ok)) listener_(FrameWritten{});
  }
  void OnDone(const grpc::Status& status) override {
    listener_(error_of(status));
    delete this;
  }

 private:
  [[nodiscard]] Error error_of(const grpc::Status& status) const {
    if (status.ok())
      return {ErrorCode::kClosed, "hub at " + address_ + ": it ended the connection"};
    return has_heard_ ? broken_connection(status.error_message(), address_)
                      : connection_error(status.error_message(), address_, is_tls_);
  }

  std::shared_ptr<GrpcStream<ClientReactor>> stream_;
  std::shared_ptr<grpc::Channel> channel_;
  v1::Hub::Stub stub_;
  grpc::ClientContext context_;
  StreamListener listener_;
  std::string address_;
  bool is_tls_;
  bool has_heard_ = false;
  Frame incoming_;
  Frame outgoing_;
};

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const std::optional<TlsKeys>& tls) {
  if (!tls) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({.pem_root_certs = tls->authority,
                               .pem_private_key = tls->key,
                               .pem_cert_chain = tls->certificate});
}

class GrpcConnector final : public Connector {
 public:
  GrpcConnector(std::string address, const std::optional<TlsKeys>& tls, const Keepalive& keepalive)
      : address_(std::move(address)),
        keepalive_(keepalive),
        is_tls_(tls.has_value()),
        credentials_(channel_credentials(tls)) {}

  StreamPtr open(StreamListener listener) override {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(keepalive_.every));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(keepalive_.patience));
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // any number
    arguments.SetMaxReceiveMessageSize(kMostFrameBytes);
    arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    auto* reactor = new ClientReactor(  // deletes itself
        grpc::CreateCustomChannel(address_, credentials_, arguments), std::move(listener), address_,
        is_tls_);
    return reactor->start();
  }

 private:
  std::string address_;
  Keepalive keepalive_;
  bool is_tls_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
};

}  // namespace

std::unique_ptr<Connector> make_grpc_connector(std::string address,
                                               const std::optional<TlsKeys>& tls,
                                               const Keepalive& keepalive) {
  keep_grpc_up();
  return std::make_unique<GrpcConnector>(std::move(address), tls, keepalive);
}

}  // namespace longhaul
