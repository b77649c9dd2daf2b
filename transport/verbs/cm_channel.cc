#include "transport/verbs/cm_channel.h"

#include <fcntl.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

namespace tutti::internal::verbs {
namespace {

constexpr int kRankShift = 32;
constexpr int kGenerationShift = 8;

static_assert(sizeof(void*) == sizeof(uint64_t));

}  // namespace

void* CmName::pack() const {
  const uint64_t number = uint64_t{static_cast<uint32_t>(rank)} << kRankShift |
                          uint64_t{generation & kMostGenerations} << kGenerationShift | index;
  return reinterpret_cast<void*>(number);
}

CmName CmName::unpack(void* context) {
  const auto number = reinterpret_cast<uint64_t>(context);
  return {.rank = static_cast<int32_t>(static_cast<uint32_t>(number >> kRankShift)),
          .generation = static_cast<uint32_t>(number >> kGenerationShift & kMostGenerations),
          .index = static_cast<uint8_t>(number)};
}

Result<std::unique_ptr<CmChannel>> CmChannel::open() {
  rdma_event_channel* const channel = rdma_create_event_channel();
  if (channel == nullptr)
    return Status::system(Code::unsupported,
                          "no rdma_cm here (rdma_create_event_channel; the kernel's module is rdma_ucm)", errno);
  std::unique_ptr<CmChannel> opened(new CmChannel(channel));
  close_in_child(channel->fd);
  const int flags = fcntl(channel->fd, F_GETFL);
  if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return Status::system(Code::unsupported, "fcntl of rdma_cm's events", errno);
  return opened;
}

CmChannel::~CmChannel() {
  if (epoch_ != process_epoch()) return;
  release_from_fork(channel_->fd);
  rdma_destroy_event_channel(channel_);
}

Result<CmId> CmChannel::make_id(const CmName& name) const {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_, &id, name.pack(), RDMA_PS_TCP) != 0)
    return Status::system(Code::out_of_resources, "rdma_create_id", errno);
  return CmId(id);
}

bool CmChannel::take(CmEvent& event) const {
  rdma_cm_event* found = nullptr;
  if (rdma_get_cm_event(channel_, &found) != 0) return false;
  event.kind = found->event;
  event.status = found->status;
  event.name = CmName::unpack(found->id->context);  // a new id has its listener's
  event.request.reset(found->event == RDMA_CM_EVENT_CONNECT_REQUEST ? found->id : nullptr);
  const rdma_conn_param& connection = found->param.conn;
  event.private_data.clear();
  if (connection.private_data != nullptr)
    event.private_data.assign(static_cast<const char*>(connection.private_data), connection.private_data_len);
  rdma_ack_cm_event(found);
  return true;
}

sockaddr_storage socket_address(const GidBytes& ip, uint16_t port) {
  sockaddr_storage result{};
  if (is_ipv4(ip)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    std::memcpy(&address.sin_addr, ip.data() + ip.size() - sizeof address.sin_addr, sizeof address.sin_addr);
    std::memcpy(&result, &address, sizeof address);
  } else {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    std::memcpy(&address.sin6_addr, ip.data(), sizeof address.sin6_addr);
    std::memcpy(&result, &address, sizeof address);
  }
  return result;
}

bool is_bound_to(const rdma_cm_id& id, const std::string& device, int port) {
  return id.verbs != nullptr && device == ibv_get_device_name(id.verbs->device) && id.port_num == port;
}

}  // namespace tutti::internal::verbs
