// The language as the design shows it: whole programs, and every form that its text mentions. Shared by the parser's
// test and the grammar's ambiguity test.
#pragma once

#include <iterator>

namespace gshard::test {

inline constexpr const char* kDigits = R"(
import nn
import optim

const batch  = 64          // overridable: gshardc -D batch=128
const hidden = 256

mesh [data: 2, model: 2]   // optional; --mesh data=4,model=1 overrides it

model Mlp(inputs: int, hidden: int, classes: int) {
    param w1: f32[inputs, hidden]  @split(1, model) = glorot_uniform()
    param b1: f32[hidden]                           = zeros()
    param w2: f32[hidden, classes]                  = glorot_uniform()
    param b2: f32[classes]                          = zeros()

    fn call[B](x: f32[B, inputs]) -> f32[B, classes] {
        let h = relu(matmul(x, w1) + b1)
        return matmul(h, w2) + b2
    }
}

let net = Mlp(64, hidden, 10)

entry fn loss(x: f32[batch, 64] @split(0, data), y: i32[batch]) -> f32 {
    return mean(nn.cross_entropy(net(x), y))
}

entry fn predict[B](x: f32[B, 64]) -> i32[B] { return argmax(net(x), axis: 1) }

train loss with optim.adam(lr: 1e-3)
)";

inline constexpr const char* kMoe = R"(
model MoeFeedForward(M: int, H: int, E: int, capacity_factor: float = 2.0) {
    param wg: wide[M, E]    @replicate = normal(stddev: 0.02)          // the router stays f32 when real is bf16
    param wi: real[E, M, H] @split(E, devices) = glorot_uniform(stack: 1)
    param wo: real[E, H, M] @split(E, devices) = glorot_uniform(stack: 1)

    fn call[G, S](x: real[G, S, M]) -> (real[G, S, M], wide) {
        let gates = softmax(einsum("GSM,ME->GSE", cast(x, wide), wg), axis: 2)
        let route = top2_gating(gates, capacity: int(ceil(capacity_factor * S / E)))
        let xe = moe_dispatch(x, route)                    @split(0, devices)   // [E, G, C, M]
        let h  = relu(einsum("EGCM,EMH->EGCH", xe, wi))
        let ye = einsum("EGCH,EHM->EGCM", h, wo)           @split(0, devices)
        return (moe_combine(ye, route), route.aux_loss)
    }
}
)";

inline constexpr const char* kForms[] = {
    kDigits,
    kMoe,
    R"(optimizer sgd(lr: wide, momentum: float = 0.0) for (w, g) {
      state m = zeros_like(w)
      m = momentum * m + g
      w = w - lr * m
  })",
    "train f with opt(a: 1) for enc.** with opt2(b: 2) for head.*, tail.0.1.w { clip_norm: 1.0, microbatches: 4 }",
    "train gen with optim.adam(lr: schedule.cosine(step, steps, peak: 1e-3, warmup: 100))\ntrain dis with "
    "optim.sgd(lr: lr)",
    "const lr: wide = 1e-3",
    "shard net.**.adam.* @split(0, data) @open\nshard net.** @split(0, data) @stored",
    "shard net.w1.adam.m, loss.x, net.blocks.*.call.u @shard([a, _])",
    "fn ring[B, D](x: f32[B, D] @split(0, data)) -> f32[D] @partial(data) manual over data { return all_reduce(x, "
    "data) }",
    "fn f[T: dtype, ...S, B](x: T[...S, B]) { return reshape(x, [rank(x), -1]) }",
    "entry fn f(n: i32) -> i32 { let s = 0 loop t in 0..n { s = s + t } return s }",
    "fn f(x: f32[B, 4*H]) -> f32[] { return x[1:, :, ::2, none, i] }",
    "fn f() { let (a, b) = g() let (_, c) = g() return (a, c) }",
    "fn f() { for b in blocks { h = b(h) } return h }",
    "model M(n: int, deep: bool = true, mode: string = \"same\", dims: [int] = [1, 2], k: int = none) {\n"
    "  let blocks = [Block(i, dims) for i in 0..n]\n"
    "  if deep { param w: f32[n] = zeros() } else if mode == \"x\" { let a = 1 } else { state m: f32 = zeros() }\n"
    "  for i in 0..n { param v: bf16[n, i + 1] = normal(stddev: 0.02) }\n"
    "  state running: f32[n] = zeros()\n"
    "  fn encode(x: real[n]) { running = 0.9 * running + x report load = sum(x) return x @remat }\n"
    "}",
    "let x = if c { a } else { b }\nlet y = if c { a } else if d { b } else { e } + 1",
    "entry fn mix(a: f32[16, 16, 16] @shard([y, _, x]),\n             b: f32[16, 16, 16] @shard([y, _, x])) -> f32[16, "
    "16, 16] {\n"
    "    return (a + b) @split(1, x, y)\n}",
    "let a = x @split(0, 2) @split(-1, data, model) @replicate @open @stored @remat",
    "let a = x @shard([(a, b), _]) let b = x @shard(tiles: [2, 1], devices: [1, 0, 3, 2], copies: 2)",
    "let model = mesh let mesh = state let state = param let param = with let with = over let over = manual",
    "fn f() { state = 1 report = 2 loop = 3 state report = loop report state = loop return report }",
    "train with with with(with: with) for with.with with over() { with: with }",
    "let a = -b ** -c * d % e / f - g + h == i and not j or k let l = 0..L",
    "let a = net.blocks[0].call(x)(y)[z][1, :].w let b = f(g(x,), y,)[0,]",
    "let a = [] let b = [1] let c = [1, 2,] let d = [[1, 2], [3, 4]] let e = (1, 2,) let f = [(i, j) for i in [1, 2]]",
    "let a = 1_000 let b = 1.5e-3 let c = 2e10 let d = true let e = none let s = \"a\\n\\\"b\"",
    "import models.mlp",
    "mesh []",
    "mesh [data: 2 * n, model: 4,]",
    "/// doc\nfn f(a: (f32[2] @split(0, data), [int]),) -> (f32, i32[]) { return a }",
    "fn f() { if a { return 1 } else if b { return 2 } else { return 3 } }",
    "",
};

}  // namespace gshard::test
