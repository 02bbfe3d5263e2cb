#include <grpcpp/grpcpp.h>

#include <chrono>

#include "longhaul/grpc/doorman.h"
#include "longhaul/grpc/grpc_log.h"
#include "longhaul/grpc/grpc_stream.h"
#include "longhaul/grpc/grpc_transport.h"
#include "proto/longhaul.grpc.pb.h"

namespace longhaul {
namespace {

constexpr int kHandshakeMilliseconds = 20'000;  // for TLS
constexpr int kIdleMilliseconds = 20'000;       // for a connection without a stream

// Deletes itself when gRPC is done with it.
class ServerReactor final : public grpc::ServerBidiReactor<Frame, Frame> {
 public:
  ServerReactor(grpc::CallbackServerContext& context, std::string peer_name)
      : context_(context),
        stream_(std::make_shared<GrpcStream<ServerReactor>>(*this, std::move(peer_name))) {}

  void accept(const Acceptor& acceptor) { listener_ = acceptor(handle_of(stream_)); }

  void start_read() { StartRead(&incoming_); }
  void start_write(Frame frame) {
    outgoing_ = std::move(frame);
    StartWrite(&outgoing_);
  }
  void cancel() { context_.TryCancel(); }
  void finish() { Finish(grpc::Status::OK); }

  void OnReadDone(bool ok) override {
    if (ok) {
      listener_(std::move(incoming_));
    } else {
      stream_->close();
    }
  }
  void OnWriteDone(bool ok) override {
    if (stream_->written(ok)) listener_(FrameWritten{});
  }
  void OnCancel() override { stream_->close(); }
  void OnDone() override {
    listener_(StreamClosed{ErrorCode::kClosed, "the replica is gone"});
    delete this;
  }

 private:
  grpc::CallbackServerContext& context_;
  std::shared_ptr<GrpcStream<ServerReactor>> stream_;
  StreamListener listener_;
  Frame incoming_;
  Frame outgoing_;
};

std::shared_ptr<grpc::ServerCredentials> server_credentials(const std::optional<TlsKeys>& tls) {
  if (!tls) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls->authority;
  options.pem_key_cert_pairs.push_back({.private_key = tls->key, .cert_chain = tls->certificate});
  return grpc::SslServerCredentials(options);
}

class RunningServer final : public GrpcServer, private v1::Hub::CallbackService {
 public:
  explicit RunningServer(Acceptor acceptor) : acceptor_(std::move(acceptor)) {}
  ~RunningServer() override {
    doorman_.reset();
    // Streams that do not end by themselves are cut off.
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();  // before the service, which is this
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  Status start(const std::string& address, const std::optional<TlsKeys>& tls,
               const Keepalive& keepalive) {
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(kMostFrameBytes);
    builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1);  // on a connection
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(keepalive.every));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(keepalive.patience));
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // any number
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               milliseconds(keepalive.every) / 2);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMilliseconds);
    inside_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        server_credentials(tls));
    server_ = builder.BuildAndStart();
    if (server_ == nullptr)
      return Error{ErrorCode::kIo, tls ? "cannot serve: the keys are damaged"
                                       : "cannot serve: gRPC does not start"};
    doorman_ = LONGHAUL_TRY(Doorman::start(
        {.address = address, .is_tls = tls.has_value()},
        [this](int descriptor, const std::string& said) { let_in(descriptor, said); },
        count_failed_handshake));
    return Done{};
  }
  [[nodiscard]] int port() const override { return doorman_->port(); }

 private:
  grpc::ServerBidiReactor<Frame, Frame>* Connect(grpc::CallbackServerContext* context) override {
    std::string name;
    for (const grpc::string_ref& one :
         context->auth_context()->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME))
      name.assign(one.data(), one.size());
    auto* reactor = new ServerReactor(*context, std::move(name));  // deletes itself
    reactor->accept(acceptor_);
    return reactor;
  }
  void let_in(int descriptor, const std::string& said) {
    const grpc::Slice slice(said);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = descriptor;
    connection.read_buffer = grpc::ByteBuffer(&slice, 1);
    inside_->HandleNewConnection(&connection);
  }

  const Acceptor acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> inside_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Doorman> doorman_;
};

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(Acceptor acceptor, const std::string& address,
                                                      const std::optional<TlsKeys>& tls,
                                                      const Keepalive& keepalive) {
  keep_grpc_up();
  auto server = std::make_unique<RunningServer>(std::move(acceptor));
  LONGHAUL_TRY(server->start(address, tls, keepalive));
  return std::unique_ptr<GrpcServer>(std::move(server));
}

void keep_grpc_up() {
  take_over_grpc_log();
  // A server without a port and without an end: it holds on to the threads that run callbacks.
  [[maybe_unused]] static const grpc::Server* const kIdle = [] {
    grpc::ServerBuilder builder;
    builder.RegisterService(new v1::Hub::CallbackService());
    return builder.BuildAndStart().release();
  }();
}

}  // namespace longhaul
