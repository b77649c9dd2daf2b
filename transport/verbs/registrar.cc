#include "transport/verbs/registrar.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <utility>

#include "src/base/fork.h"
#include "src/base/log.h"
#include "transport/verbs/unmap_events.h"

namespace tutti::internal::verbs {
namespace {

// Invariant: no entry lies within another. So ends grow with begins, and of all entries that begin at or before an
// address, the last one reaches furthest: where any entry holds a range, that one does. Owns nothing.
template <class Entry>
class IntervalMap {
 public:
  Entry* holding(MemoryRange range) const {
    const auto after = entries_.upper_bound(range.begin);
    if (after == entries_.begin()) return nullptr;
    Entry* const entry = std::prev(after)->second;
    return entry->range.contains(range) ? entry : nullptr;
  }
  // Of the entries that overlap `range`, the last that begins at or before it, which reaches furthest into it; where
  // there is none, the first that begins within.
  Entry* overlapping(MemoryRange range) const {
    auto it = entries_.upper_bound(range.begin);
    if (it != entries_.begin() && std::prev(it)->second->range.end > range.begin) --it;
    return it != entries_.end() && it->first < range.end ? it->second : nullptr;
  }
  Entry* at(uintptr_t begin) const {
    const auto it = entries_.find(begin);
    return it != entries_.end() ? it->second : nullptr;
  }
  // The next one by address.
  Entry* after(const Entry& entry) const {
    const auto it = entries_.upper_bound(entry.range.begin);
    return it != entries_.end() ? it->second : nullptr;
  }
  void insert(Entry& entry) { entries_.emplace(entry.range.begin, &entry); }
  void erase(const Entry& entry) { entries_.erase(entry.range.begin); }

 private:
  std::map<uintptr_t, Entry*> entries_;
};

bool is_range(const void* memory, size_t bytes) {
  return bytes > 0 && bytes <= std::numeric_limits<uintptr_t>::max() - reinterpret_cast<uintptr_t>(memory);
}

MemoryRange range_of(const void* memory, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  return {begin, begin + bytes};
}

std::string text_of(MemoryRange range) { return fmt::format("[{:#x}, {:#x})", range.begin, range.end); }

}  // namespace

// Owns the entries in two lists: those of the cache that nobody uses, least recently used first, and all others. Moving
// one between them allocates nothing.
struct Registrar::Parts {
  enum class Known { added, cached, to_its_users };  // the last in no map: deregistered with the last release
  struct Entry : Registration {
    MemoryRange range;
    MemoryDomain::Handle handle;
    Known known = Known::to_its_users;
    uint64_t users = 0;
    bool is_idle = false;
    std::list<Entry>::iterator self;
  };

  Parts(MemoryDomain& domain_of_ports, const RegistrarOptions& given) : domain(domain_of_ports), options(given) {}
  ~Parts();

  Entry* find(MemoryRange range, bool writable) const;
  Entry* find_current(MemoryRange range, bool writable);
  Registration* hold(Entry& entry);
  void release(Entry& entry);

  Entry* register_now(MemoryRange range, bool writable, Status* why);
  Result<MemoryDomain::Handle> add_to_domain(MemoryRange range, bool writable, UnmapEvents::Watch& watch);
  Entry& new_entry(MemoryRange range, const MemoryDomain::Handle& handle, bool is_writable);
  void cache(Entry& entry);

  void forget(Entry& entry);
  void drop(Entry& entry);
  void deregister(Entry& entry);
  void evict(uint64_t bytes);
  void evict_beyond_limit();
  void apply_events() {
    if (events != nullptr && events->has_any()) apply_all_events();
  }
  void apply_all_events();
  void apply(const UnmapEvents::Event& event);
  void unwatch_uncovered(MemoryRange range);

  MemoryDomain& domain;
  const RegistrarOptions options;
  const uintptr_t page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uint32_t epoch = process_epoch();
  std::unique_ptr<UnmapEvents> events;  // null: no cache
  std::list<Entry> held;
  std::list<Entry> idle;
  uint64_t idle_bytes = 0;
  IntervalMap<Entry> added;   // as given, to the byte: peers reach what was given to them, and no more
  IntervalMap<Entry> cached;  // whole pages
};

Registrar::Parts::~Parts() {
  if (process_epoch() != epoch) return;  // a child of a fork: the registrations are its parent's
  for (auto* entries : {&idle, &held})
    while (!entries->empty()) {
      Entry& entry = entries->front();
      if (entry.known == Known::cached) {
        cached.erase(entry);
        unwatch_uncovered(entry.range);
      }
      deregister(entry);
    }
}

Registrar::Parts::Entry* Registrar::Parts::find(MemoryRange range, bool writable) const {
  for (const auto* map : {&added, &cached})
    if (Entry* const entry = map->holding(range); entry != nullptr && (entry->is_writable || !writable)) return entry;
  return nullptr;
}

// What is found, if the memory is the same that was registered.
Registrar::Parts::Entry* Registrar::Parts::find_current(MemoryRange range, bool writable) {
  apply_events();
  Entry* entry = find(range, writable);
  if (entry == nullptr || entry->known == Known::added) return entry;
  const bool is_settled = events->settle();
  if (is_settled && !events->has_any()) return entry;
  apply_events();
  entry = find(range, writable);
  if (is_settled || entry == nullptr || entry->known == Known::added) return entry;
  drop(*entry);  // nobody can say
  return nullptr;
}

Registration* Registrar::Parts::hold(Entry& entry) {
  if (std::exchange(entry.is_idle, false)) {
    idle_bytes -= entry.range.bytes();
    held.splice(held.end(), idle, entry.self);
  }
  ++entry.users;
  return &entry;
}

void Registrar::Parts::release(Entry& entry) {
  if (--entry.users > 0) return;
  if (entry.known == Known::to_its_users) return deregister(entry);
  if (entry.known == Known::added) return;
  entry.is_idle = true;
  idle_bytes += entry.range.bytes();
  idle.splice(idle.end(), held, entry.self);
  evict_beyond_limit();
}

// Writable where that is possible, so that the next one can use it too.
Registrar::Parts::Entry* Registrar::Parts::register_now(MemoryRange needed, bool writable, Status* why) {
  const MemoryRange range{needed.begin / page_bytes * page_bytes,
                          (needed.end + page_bytes - 1) / page_bytes * page_bytes};
  auto watch = UnmapEvents::Watch::refused;
  bool is_writable = true;
  auto handle = add_to_domain(range, true, watch);
  if (!writable && handle.status().code() == Code::invalid_argument) {
    is_writable = false;
    handle = add_to_domain(range, false, watch);
  }
  const bool is_cached = handle.ok() && watch == UnmapEvents::Watch::reliable;
  if (!is_cached && watch != UnmapEvents::Watch::refused) unwatch_uncovered(range);
  if (!handle.ok()) {
    if (why != nullptr) *why = handle.status();
    return nullptr;
  }
  Entry& entry = new_entry(range, handle.value(), is_writable);
  if (is_cached) cache(entry);
  return &entry;
}

// Watched first: what is unmapped from now on is known. Where there is no room, idle entries go until there is.
Result<MemoryDomain::Handle> Registrar::Parts::add_to_domain(MemoryRange range, bool writable,
                                                             UnmapEvents::Watch& watch) {
  for (;;) {
    if (events != nullptr) watch = events->watch(range);  // each time: what was evicted may have overlapped it
    auto handle = domain.add(reinterpret_cast<void*>(range.begin), range.bytes(), writable);
    if (handle.status().code() != Code::out_of_resources || idle.empty()) return handle;
    evict(range.bytes());
  }
}

Registrar::Parts::Entry& Registrar::Parts::new_entry(MemoryRange range, const MemoryDomain::Handle& handle,
                                                     bool is_writable) {
  Entry& entry = held.emplace_back();
  entry.self = std::prev(held.end());
  entry.keys = handle.keys;
  entry.is_writable = is_writable;
  entry.range = range;
  entry.handle = handle;
  return entry;
}

// What lies within the new entry goes, and so does what holds it, which was of no use because it is not writable.
// Other overlaps stay: each entry is found for what it holds alone.
void Registrar::Parts::cache(Entry& entry) {
  MemoryRange replaced = entry.range;
  for (Entry* other = cached.overlapping(entry.range); other != nullptr && other->range.begin < entry.range.end;) {
    Entry* const next = cached.after(*other);
    if (other->range.contains(entry.range) || entry.range.contains(other->range)) {
      replaced = {std::min(replaced.begin, other->range.begin), std::max(replaced.end, other->range.end)};
      forget(*other);
    }
    other = next;
  }
  entry.known = Known::cached;
  cached.insert(entry);
  unwatch_uncovered(replaced);
}

// No acquire finds it any more. The caller sees to what is watched.
void Registrar::Parts::forget(Entry& entry) {
  cached.erase(entry);
  if (entry.is_idle) return deregister(entry);
  entry.known = Known::to_its_users;
}

void Registrar::Parts::drop(Entry& entry) {
  const MemoryRange range = entry.range;
  forget(entry);
  unwatch_uncovered(range);
}

void Registrar::Parts::deregister(Entry& entry) {
  domain.remove(entry.handle);
  if (entry.is_idle) idle_bytes -= entry.range.bytes();
  (entry.is_idle ? idle : held).erase(entry.self);
}

// At least so much, as far as there is.
void Registrar::Parts::evict(uint64_t bytes) {
  const uint64_t target = idle_bytes - std::min(idle_bytes, bytes);
  while (idle_bytes > target) drop(idle.front());
}

void Registrar::Parts::evict_beyond_limit() {
  if (idle_bytes > options.cache_bytes) evict(idle_bytes - options.cache_bytes);
  if (idle.size() > options.cache_entries) evict(1);
}

void Registrar::Parts::apply_all_events() {
  UnmapEvents::Events happened;
  const size_t count = events->take(happened);
  for (size_t i = 0; i < count; ++i) apply(happened[i]);
}

// Of what is gone nothing is unwatched: something else may be there by now, watched by somebody else.
void Registrar::Parts::apply(const UnmapEvents::Event& event) {
  while (Entry* const entry = cached.overlapping(event.range)) {
    const MemoryRange range = entry->range;
    forget(*entry);
    unwatch_uncovered({range.begin, event.range.begin});
    unwatch_uncovered({event.range.end, range.end});
  }
  if (event.is_mapped) events->unwatch(event.range);
}

// What no cached entry needs to be watched.
void Registrar::Parts::unwatch_uncovered(MemoryRange range) {
  if (events == nullptr) return;
  while (range.begin < range.end) {
    const Entry* const covering = cached.overlapping(range);
    const uintptr_t end = covering != nullptr ? covering->range.begin : range.end;
    if (range.begin < end) events->unwatch({range.begin, end});
    range.begin = covering != nullptr ? covering->range.end : range.end;
  }
}

Registrar::Registrar(MemoryDomain& domain, const RegistrarOptions& options)
    : parts_(std::make_unique<Parts>(domain, options)) {
  if (!options.cache) return;
  auto events = UnmapEvents::start();
  if (events.ok())
    parts_->events = std::move(events.value());
  else
    log_debug("memory is registered for each transfer, since unmap events cannot be had: {}",
              events.status().message());
}

Registrar::~Registrar() = default;

bool Registrar::has_cache() const { return parts_->events != nullptr; }

Status Registrar::add(void* memory, size_t bytes) {
  if (!is_range(memory, bytes))
    return Status(Code::invalid_argument, fmt::format("{} bytes at {} are no memory", bytes, memory));
  const MemoryRange range = range_of(memory, bytes);
  parts_->apply_events();
  if (const auto* const other = parts_->added.overlapping(range))
    return Status(Code::invalid_argument,
                  fmt::format("memory {} overlaps {}, which is registered", text_of(range), text_of(other->range)));
  for (;;) {
    auto handle = parts_->domain.add(memory, bytes, true);
    if (handle.ok()) {
      auto& entry = parts_->new_entry(range, handle.value(), true);
      entry.known = Parts::Known::added;
      parts_->added.insert(entry);
      return {};
    }
    if (handle.status().code() != Code::out_of_resources || parts_->idle.empty()) return handle.status();
    parts_->evict(bytes);
  }
}

Status Registrar::remove(void* memory) {
  auto* const entry = parts_->added.at(reinterpret_cast<uintptr_t>(memory));
  if (entry == nullptr)
    return Status(Code::invalid_argument, fmt::format("{} is not the start of memory that is registered", memory));
  parts_->added.erase(*entry);
  entry->known = Parts::Known::to_its_users;
  if (entry->users == 0) parts_->deregister(*entry);
  return {};
}

bool Registrar::is_added(const void* memory, size_t bytes) const {
  return is_range(memory, bytes) && parts_->added.holding(range_of(memory, bytes)) != nullptr;
}

const Registration* Registrar::acquire(const void* memory, size_t bytes, bool writable, Status* why) {
  Parts& parts = *parts_;
  if (!is_range(memory, bytes)) {
    if (why != nullptr)
      *why = Status(Code::invalid_argument, fmt::format("{} bytes at {} are no memory", bytes, memory));
    return nullptr;
  }
  const MemoryRange range = range_of(memory, bytes);
  Parts::Entry* entry = parts.find_current(range, writable);
  if (entry == nullptr) entry = parts.register_now(range, writable, why);
  return entry != nullptr ? parts.hold(*entry) : nullptr;
}

void Registrar::release(const Registration* registration) {
  Parts& parts = *parts_;
  parts.apply_events();
  parts.release(static_cast<Parts::Entry&>(const_cast<Registration&>(*registration)));
}

}  // namespace tutti::internal::verbs
