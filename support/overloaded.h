// One lambda per alternative for std::visit over a closed variant: a missing one does not compile.
#pragma once

namespace gshard {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace gshard
