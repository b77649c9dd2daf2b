// A doubly linked list of objects that carry their own links, and a pool that hands objects out again: neither
// allocates in steady state. Owner's thread.
#pragma once

#include <cstddef>
#include <deque>

namespace tutti::internal {

// Sends, receives and early messages of a rank that there is room for from the start: a moment with more of them than
// ever before allocates, and then never again.
inline constexpr size_t kUsualRequests = 128;

template <class T>
struct Links {
  T* previous = nullptr;
  T* next = nullptr;
};

// T derives from Links<T>. Does not own its elements.
template <class T>
class List {
 public:
  bool empty() const { return first_ == nullptr; }
  T* front() const { return first_; }

  void push_back(T& item) {
    item.previous = last_;
    item.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &item;
    last_ = &item;
  }
  void erase(T& item) {
    (item.previous != nullptr ? item.previous->next : first_) = item.next;
    (item.next != nullptr ? item.next->previous : last_) = item.previous;
    item.previous = item.next = nullptr;
  }
  T* pop_front() {
    T* const item = first_;
    if (item != nullptr) erase(*item);
    return item;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

template <class T>
class Pool {
 public:
  T& take() {
    if (free_.empty()) return items_.emplace_back();
    return *free_.pop_front();
  }
  void give(T& item) { free_.push_front(item); }
  // Room for `count` more from now on.
  void fill(size_t count) {
    for (size_t i = 0; i < count; ++i) give(items_.emplace_back());
  }

 private:
  class Stack {
   public:
    bool empty() const { return top_ == nullptr; }
    void push_front(T& item) {
      item.next = top_;
      top_ = &item;
    }
    T* pop_front() {
      T* const item = top_;
      top_ = item->next;
      return item;
    }

   private:
    T* top_ = nullptr;
  };
  std::deque<T> items_;
  Stack free_;
};

}  // namespace tutti::internal
