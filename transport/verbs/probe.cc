#include "transport/verbs/probe.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <memory>
#include <system_error>

namespace tutti::internal::verbs {
namespace {

template <class T, int (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const { destroy(object); }
};
template <class T, int (*destroy)(T*)>
using Owned = std::unique_ptr<T, Destroy<T, destroy>>;

rlim_t locked_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

// The kernel counts memory of queues as locked, too.
Status failed(std::string_view what, int error) {
  const bool is_short = error == ENOMEM || error == EAGAIN;
  std::string message = fmt::format("{}: {}", what, std::generic_category().message(error));
  const rlim_t limit = locked_limit();
  if (is_short && limit != RLIM_INFINITY)
    message += fmt::format("; the limit of locked memory (RLIMIT_MEMLOCK, ulimit -l) is {} bytes{}", limit,
                           limit < kLeastLockedBytes ? fmt::format(", at least {} are needed", kLeastLockedBytes) : "");
  return Status(is_short ? Code::out_of_resources : Code::unsupported, std::move(message));
}

// A small limit need not hold for us: root may go over it.
Status probe_locking(ibv_pd* domain) {
  if (locked_limit() >= kLeastLockedBytes) return {};
  void* const memory = mmap(nullptr, kLeastLockedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failed("mmap", errno);
  ibv_mr* const region = ibv_reg_mr(domain, memory, kLeastLockedBytes, int{IBV_ACCESS_LOCAL_WRITE});
  const int error = errno;
  if (region) ibv_dereg_mr(region);
  munmap(memory, kLeastLockedBytes);
  return region ? Status() : failed("registering memory (ibv_reg_mr)", error);
}

Status probe_queue_pair(ibv_context* context, ibv_pd* domain, int port) {
  constexpr int kDepth = 16;
  const Owned<ibv_cq, ibv_destroy_cq> completions(ibv_create_cq(context, kDepth, nullptr, nullptr, 0));
  if (!completions) return failed("no completion queue (ibv_create_cq)", errno);
  ibv_srq_init_attr receives_wanted{.srq_context = nullptr, .attr = {.max_wr = kDepth, .max_sge = 1, .srq_limit = 0}};
  const Owned<ibv_srq, ibv_destroy_srq> receives(ibv_create_srq(domain, &receives_wanted));
  if (!receives) return failed("no shared receive queue (ibv_create_srq)", errno);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions.get();
  wanted.srq = receives.get();
  wanted.cap = {.max_send_wr = kDepth, .max_recv_wr = 0, .max_send_sge = 1, .max_recv_sge = 0, .max_inline_data = 0};
  wanted.qp_type = IBV_QPT_RC;
  const Owned<ibv_qp, ibv_destroy_qp> pair(ibv_create_qp(domain, &wanted));
  if (!pair) return failed("no reliable queue pair (ibv_create_qp)", errno);
  ibv_qp_attr start{};
  start.qp_state = IBV_QPS_INIT;
  start.port_num = static_cast<uint8_t>(port);
  start.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  const int error =
      ibv_modify_qp(pair.get(), &start, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  return error == 0 ? Status() : failed("a queue pair does not start (ibv_modify_qp to INIT)", error);
}

}  // namespace

Status probe(ibv_context* context, ibv_pd* domain, int port) {
  TUTTI_RETURN_IF_ERROR(probe_queue_pair(context, domain, port));
  return probe_locking(domain);
}

}  // namespace tutti::internal::verbs
