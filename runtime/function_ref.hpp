// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace libswap {

template <typename Signature>
class FunctionRef;

/// A callable borrowed for the length of a call: two words, no allocation. Never store one.
template <typename Result, typename... Args>
class FunctionRef<Result(Args...)> {
  public:
    template <typename Callable,
              typename = std::enable_if_t<!std::is_same_v<std::decay_t<Callable>, FunctionRef>>>
    FunctionRef(Callable&& callable) noexcept  // NOLINT: implicit on purpose, as a parameter type
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
          call_([](void* object, Args... args) -> Result {
              return (*static_cast<std::add_pointer_t<std::remove_reference_t<Callable>>>(object))(
                  std::forward<Args>(args)...);
          }) {}

    Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

  private:
    void* object_;
    Result (*call_)(void*, Args...);
};

}  // namespace libswap
