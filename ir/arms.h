// One lambda per alternative for std::visit over the closed variants of ir/: a missing one does not compile.
#pragma once

namespace gshard {

template <class... Fs>
struct Arms : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Arms(Fs...) -> Arms<Fs...>;

}  // namespace gshard
