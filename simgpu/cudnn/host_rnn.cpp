// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The work of the recurrent networks' kernels. Formulas: cuDNN's reference, cudnnRNNMode_t.

#include <cmath>

#include "simgpu/cublas/blas.hpp"
#include "simgpu/cudnn/dropout.hpp"
#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/rnn.hpp"
#include "simgpu/cudnn/work.hpp"

namespace libswap::simgpu::cudnn {
namespace {

/// c (m x n) = a (m x k) b' (n x k) + beta c, or with b not transposed (k x n); row-major.
template <typename T>
void multiply(bool b_transposed, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
              std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
    // Row-major matrices are, column by column, transposed ones: c' = op(b)' a'.
    cublas::blas::gemm<T>({.transpose_a = b_transposed,
                           .transpose_b = false,
                           .m = n,
                           .n = m,
                           .k = k,
                           .alpha = 1,
                           .a = b,
                           .lda = ldb,
                           .b = a,
                           .ldb = lda,
                           .beta = beta,
                           .c = c,
                           .ldc = ldc});
}

/// c (m x n) += a' b, a (k x m), b (k x n); row-major.
template <typename T>
void add_products(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
                  const T* b, std::int64_t ldb, T* c) {
    cublas::blas::gemm<T>({.transpose_a = false,
                           .transpose_b = true,
                           .m = n,
                           .n = m,
                           .k = k,
                           .alpha = 1,
                           .a = b,
                           .lda = ldb,
                           .b = a,
                           .ldb = lda,
                           .beta = 1,
                           .c = c,
                           .ldc = n});
}

template <typename T>
T sigmoid(T x) {
    return 1 / (1 + std::exp(-x));
}

/// A network, its sequences and its reserve space on the host.
template <typename T>
class Network {
  public:
    Network(Work& work, const RnnParams& params)
        : work_(work),
          p_(params),
          s_(params.shape),
          steps_(params.x_layout.steps),
          batch_(params.x_layout.batch) {
        work_.use_workspace(p_.workspace, p_.workspace_bytes);
        lengths_.assign(static_cast<std::size_t>(batch_), static_cast<std::int32_t>(steps_));
        if (p_.lengths != 0) {
            const auto* lengths = work_.span<const std::int32_t>(p_.lengths, batch_);
            if (lengths != nullptr) {
                lengths_.assign(lengths, lengths + batch_);
            }
        }
    }

    void forward();
    void backward_data();
    void backward_weights();

  private:
    using Values = std::vector<T>;

    std::size_t row(std::int64_t t, std::int64_t b) const {
        return static_cast<std::size_t>(t * batch_ + b);
    }
    bool is_there(std::int64_t t, std::int64_t b) const {
        return t < lengths_[static_cast<std::size_t>(b)];
    }
    /// The step that comes i-th in a direction.
    std::int64_t step_of(int direction, std::int64_t i, std::int64_t b) const {
        return direction == 0 ? i : lengths_[static_cast<std::size_t>(b)] - 1 - i;
    }

    /// Calls visit(t, b, place of the first element) for every step that is there, or, of layouts
    /// with padding, for all of them.
    template <typename Visit>
    void for_each_place(const SequenceLayout& layout, const Visit& visit) const {
        std::int64_t packed = 0;
        for (std::int64_t t = 0; t < steps_; ++t) {
            for (std::int64_t b = 0; b < batch_; ++b) {
                switch (layout.layout) {
                    case CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED:
                        if (is_there(t, b)) {
                            visit(t, b, packed++ * layout.width);
                        }
                        break;
                    case CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED:
                        visit(t, b, (b * steps_ + t) * layout.width);
                        break;
                    default:
                        visit(t, b, (t * batch_ + b) * layout.width);
                        break;
                }
            }
        }
    }

    /// How the memory of sequences looks as a tensor of one row.
    Tensor flat(const SequenceLayout& layout) const {
        std::int64_t rows = 0;
        for_each_place(layout, [&](std::int64_t, std::int64_t, std::int64_t) { ++rows; });
        const int dims[] = {1, 1, static_cast<int>(rows * layout.width)};
        return dense_tensor(static_cast<cudnnDataType_t>(layout.type), 3, dims);
    }

    /// As rows of steps x batch; what is padding is 0.
    Values load_sequences(std::uint64_t va, const SequenceLayout& layout) {
        const auto width = static_cast<std::size_t>(layout.width);
        Values rows(static_cast<std::size_t>(steps_ * batch_) * width);
        const Values memory = work_.load<T>(va, flat(layout));
        if (work_.faulted()) {
            return rows;
        }
        for_each_place(layout, [&](std::int64_t t, std::int64_t b, std::int64_t at) {
            if (is_there(t, b)) {
                std::copy_n(memory.begin() + at, width,
                            rows.begin() + static_cast<std::ptrdiff_t>(row(t, b) * width));
            }
        });
        return rows;
    }

    void store_sequences(std::uint64_t va, const SequenceLayout& layout, const Values& rows,
                         double padding) {
        const Tensor tensor = flat(layout);
        const auto width = static_cast<std::size_t>(layout.width);
        Values memory(static_cast<std::size_t>(tensor.elements()), static_cast<T>(padding));
        for_each_place(layout, [&](std::int64_t t, std::int64_t b, std::int64_t at) {
            if (is_there(t, b)) {
                std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(row(t, b) * width), width,
                            memory.begin() + at);
            }
        });
        work_.store(va, tensor, memory);
    }

    Tensor states_desc() const {
        const int dims[] = {s_.pseudo_layers(), static_cast<int>(batch_), s_.hidden};
        return dense_tensor(static_cast<cudnnDataType_t>(s_.type), 3, dims);
    }
    /// Of all pseudo layers; zeros where there are none.
    Values load_states(std::uint64_t va) {
        return va != 0 ? work_.load<T>(va, states_desc())
                       : Values(static_cast<std::size_t>(states_desc().elements()));
    }
    void store_states(std::uint64_t va, const Values& states) {
        if (va != 0) {
            work_.store(va, states_desc(), states);
        }
    }
    std::size_t state(int pseudo, std::int64_t b) const {
        return static_cast<std::size_t>((pseudo * batch_ + b) * s_.hidden);
    }

    Tensor weights_desc() const {
        const int dims[] = {1, 1, static_cast<int>(s_.weights_before(s_.pseudo_layers()))};
        return dense_tensor(static_cast<cudnnDataType_t>(s_.type), 3, dims);
    }

    /// The reserve space of a pseudo layer; scratch memory where there is none.
    T* reserve_of(int pseudo) {
        const std::int64_t block = steps_ * batch_ * s_.row_elements();
        if (p_.reserve != 0) {
            T* all = work_.span<T>(p_.reserve, block * s_.pseudo_layers());
            return all == nullptr ? nullptr : all + pseudo * block;
        }
        scratch_.resize(static_cast<std::size_t>(block * s_.pseudo_layers()));
        return scratch_.data() + pseudo * block;
    }
    T* reserve_row(T* block, std::int64_t t, std::int64_t b) const {
        return block + static_cast<std::int64_t>(row(t, b)) * s_.row_elements();
    }

    /// What a layer above sees: the outputs of all directions, behind dropout.
    Values outputs_of(int layer) {
        const auto width = static_cast<std::size_t>(s_.directions * s_.hidden);
        Values outputs(static_cast<std::size_t>(steps_ * batch_) * width);
        for (int d = 0; d < s_.directions; ++d) {
            T* block = reserve_of(layer * s_.directions + d);
            if (block == nullptr) {
                return outputs;
            }
            for (std::int64_t t = 0; t < steps_; ++t) {
                for (std::int64_t b = 0; b < batch_; ++b) {
                    if (!is_there(t, b)) {
                        continue;
                    }
                    const T* from = reserve_row(block, t, b);
                    T* to = outputs.data() + row(t, b) * width +
                            static_cast<std::size_t>(d * s_.hidden);
                    for (int j = 0; j < s_.hidden; ++j) {
                        to[j] = from[s_.output_at() + j] * from[s_.mask_at() + j];
                    }
                }
            }
        }
        return outputs;
    }

    void draw_masks(int layer);
    void run_layer(int layer, const Values& inputs, const Values& weights, Values& h, Values& c);
    void step_forward(const T* pre, const T* recurrent, const T* weights, int pseudo, T* h, T* c,
                      T* reserve);
    void step_backward(const T* h_before, const T* c_before, T* reserve, const T* dh, T* dc,
                       T* dh_direct) const;
    void back_through_layer(int layer, const Values& weights, const Values& hx, const Values& cx,
                            Values& dh, Values& dc, Values& douts);

    Work& work_;
    const RnnParams& p_;
    const RnnShape& s_;
    std::int64_t steps_;
    std::int64_t batch_;
    std::vector<std::int32_t> lengths_;
    Values scratch_;
};

/// Between layers, in training, outputs are dropped; what remains is scaled up.
template <typename T>
void Network<T>::draw_masks(int layer) {
    const bool drops =
        p_.training != 0 && p_.dropout > 0 && p_.states != 0 && layer + 1 < s_.layers;
    auto* states = drops ? work_.span<DropoutStates>(p_.states, 1) : nullptr;
    for (int d = 0; d < s_.directions; ++d) {
        T* block = reserve_of(layer * s_.directions + d);
        for (std::int64_t i = 0; block != nullptr && i < steps_ * batch_; ++i) {
            T* mask = block + i * s_.row_elements() + s_.mask_at();
            for (int j = 0; j < s_.hidden; ++j) {
                const bool stays = states == nullptr || draw(*states) >= p_.dropout;
                mask[j] = !stays              ? T{}
                          : states == nullptr ? T{1}
                                              : static_cast<T>(1 / (1 - p_.dropout));
            }
        }
    }
}

template <typename T>
void Network<T>::step_forward(const T* pre, const T* recurrent, const T* weights, int pseudo, T* h,
                              T* c, T* reserve) {
    const int hidden = s_.hidden;
    const T* input_bias = s_.has_input_bias() ? weights + s_.input_bias_at(pseudo) : nullptr;
    const T* recurrent_bias =
        s_.has_recurrent_bias() ? weights + s_.recurrent_bias_at(pseudo) : nullptr;
    const auto in = [&](int gate, int j) {
        const int at = gate * hidden + j;
        return pre[at] + (input_bias == nullptr ? T{} : input_bias[at]);
    };
    const auto rec = [&](int gate, int j) {
        const int at = gate * hidden + j;
        return recurrent[at] + (recurrent_bias == nullptr ? T{} : recurrent_bias[at]);
    };
    for (int j = 0; j < hidden; ++j) {
        T* gate = reserve + j;
        if (s_.cell == CUDNN_LSTM) {
            const T i = sigmoid(in(0, j) + rec(0, j));
            const T f = sigmoid(in(1, j) + rec(1, j));
            const T g = std::tanh(in(2, j) + rec(2, j));
            const T o = sigmoid(in(3, j) + rec(3, j));
            c[j] = f * c[j] + i * g;
            h[j] = o * std::tanh(c[j]);
            gate[0] = i;
            gate[hidden] = f;
            gate[2 * hidden] = g;
            gate[3 * hidden] = o;
            reserve[s_.state_at() + j] = c[j];
        } else if (s_.cell == CUDNN_GRU) {
            const T r = sigmoid(in(0, j) + rec(0, j));
            const T z = sigmoid(in(1, j) + rec(1, j));
            const T candidate = rec(2, j);
            const T n = std::tanh(in(2, j) + r * candidate);
            h[j] = (1 - z) * n + z * h[j];
            gate[0] = r;
            gate[hidden] = z;
            gate[2 * hidden] = n;
            reserve[s_.state_at() + j] = candidate;
        } else {
            const T a = in(0, j) + rec(0, j);
            h[j] = s_.cell == CUDNN_RNN_TANH ? std::tanh(a) : std::max(a, T{});
            gate[0] = h[j];
        }
        reserve[s_.output_at() + j] = h[j];
    }
}

template <typename T>
void Network<T>::run_layer(int layer, const Values& inputs, const Values& weights, Values& h,
                           Values& c) {
    const std::int64_t rows = s_.rows();
    for (int d = 0; d < s_.directions; ++d) {
        const int pseudo = layer * s_.directions + d;
        const std::int64_t width = s_.inputs_of(pseudo);
        const T* w = weights.data() + s_.weights_before(pseudo);
        T* block = reserve_of(pseudo);
        if (block == nullptr) {
            return;
        }
        Values pre(static_cast<std::size_t>(steps_ * batch_ * rows));
        multiply<T>(true, steps_ * batch_, rows, width, inputs.data(), width, w, width, 0,
                    pre.data(), rows);
        Values recurrent(static_cast<std::size_t>(batch_ * rows));
        T* states = h.data() + state(pseudo, 0);
        for (std::int64_t i = 0; i < steps_; ++i) {
            multiply<T>(true, batch_, rows, s_.hidden, states, s_.hidden,
                        w + s_.recurrent_at(pseudo), s_.hidden, 0, recurrent.data(), rows);
            for (std::int64_t b = 0; b < batch_; ++b) {
                if (!is_there(i, b)) {
                    continue;
                }
                const std::int64_t t = step_of(d, i, b);
                step_forward(pre.data() + static_cast<std::int64_t>(row(t, b)) * rows,
                             recurrent.data() + b * rows, w, pseudo, states + b * s_.hidden,
                             c.data() + state(pseudo, b), reserve_row(block, t, b));
            }
        }
        const double products =
            static_cast<double>(steps_ * batch_ * rows) * static_cast<double>(width + s_.hidden);
        work_.cost(2 * products, 0);
    }
}

template <typename T>
void Network<T>::forward() {
    const Values weights = work_.load<T>(p_.weights, weights_desc());
    Values inputs = load_sequences(p_.x, p_.x_layout);
    Values h = load_states(p_.hx);
    Values c = load_states(p_.cx);
    for (int layer = 0; layer < s_.layers && !work_.faulted(); ++layer) {
        draw_masks(layer);
        run_layer(layer, inputs, weights, h, c);
        inputs = outputs_of(layer);
    }
    if (work_.faulted()) {
        return;
    }
    store_sequences(p_.y, p_.y_layout, inputs, p_.padding);
    store_states(p_.hy, h);
    if (s_.cell == CUDNN_LSTM) {
        store_states(p_.cy, c);
    }
}

/// From the gradient by a step's output to those before its gates, which replace the gates in the
/// reserve space. `dc`: in, by the state behind the step; out, by the one before it. `dh_direct`:
/// what goes to the output before without passing a matrix.
template <typename T>
void Network<T>::step_backward(const T* h_before, const T* c_before, T* reserve, const T* dh, T* dc,
                               T* dh_direct) const {
    const int hidden = s_.hidden;
    for (int j = 0; j < hidden; ++j) {
        T* gate = reserve + j;
        dh_direct[j] = 0;
        if (s_.cell == CUDNN_LSTM) {
            const T i = gate[0];
            const T f = gate[hidden];
            const T g = gate[2 * hidden];
            const T o = gate[3 * hidden];
            const T tanh_c = std::tanh(reserve[s_.state_at() + j]);
            const T d = dc[j] + dh[j] * o * (1 - tanh_c * tanh_c);
            gate[0] = d * g * i * (1 - i);
            gate[hidden] = d * c_before[j] * f * (1 - f);
            gate[2 * hidden] = d * i * (1 - g * g);
            gate[3 * hidden] = dh[j] * tanh_c * o * (1 - o);
            dc[j] = d * f;
        } else if (s_.cell == CUDNN_GRU) {
            const T r = gate[0];
            const T z = gate[hidden];
            const T n = gate[2 * hidden];
            const T candidate = reserve[s_.state_at() + j];
            const T dn = dh[j] * (1 - z) * (1 - n * n);
            gate[0] = dn * candidate * r * (1 - r);
            gate[hidden] = dh[j] * (h_before[j] - n) * z * (1 - z);
            gate[2 * hidden] = dn;
            reserve[s_.state_at() + j] = dn * r;
            dh_direct[j] = dh[j] * z;
        } else {
            const T h = gate[0];
            gate[0] = s_.cell == CUDNN_RNN_TANH ? dh[j] * (1 - h * h) : h > 0 ? dh[j] : T{};
        }
    }
}

template <typename T>
void Network<T>::back_through_layer(int layer, const Values& weights, const Values& hx,
                                    const Values& cx, Values& dh, Values& dc, Values& douts) {
    const std::int64_t rows = s_.rows();
    const std::int64_t hidden = s_.hidden;
    const std::int64_t out_width = s_.directions * hidden;
    const std::int64_t width = s_.inputs_of(layer * s_.directions);
    Values dinputs(static_cast<std::size_t>(steps_ * batch_ * width));
    for (int d = 0; d < s_.directions; ++d) {
        const int pseudo = layer * s_.directions + d;
        const T* w = weights.data() + s_.weights_before(pseudo);
        T* block = reserve_of(pseudo);
        if (block == nullptr) {
            return;
        }
        Values gradients(static_cast<std::size_t>(steps_ * batch_ * rows));
        Values recurrent(static_cast<std::size_t>(batch_ * rows));
        Values direct(static_cast<std::size_t>(batch_ * hidden));
        for (std::int64_t i = steps_ - 1; i >= 0; --i) {
            std::fill(recurrent.begin(), recurrent.end(), T{});
            for (std::int64_t b = 0; b < batch_; ++b) {
                T* dh_b = dh.data() + state(pseudo, b);
                T* direct_b = direct.data() + b * hidden;
                if (!is_there(i, b)) {
                    std::copy_n(dh_b, hidden,
                                direct_b);  // the sequence is not there: nothing changes
                    continue;
                }
                const std::int64_t t = step_of(d, i, b);
                T* here = reserve_row(block, t, b);
                const T* dy =
                    douts.data() + static_cast<std::int64_t>(row(t, b)) * out_width + d * hidden;
                for (std::int64_t j = 0; j < hidden; ++j) {
                    dh_b[j] += dy[j] * here[s_.mask_at() + j];
                }
                const T* before = i == 0 ? nullptr : reserve_row(block, step_of(d, i - 1, b), b);
                step_backward(
                    before == nullptr ? hx.data() + state(pseudo, b) : before + s_.output_at(),
                    before == nullptr ? cx.data() + state(pseudo, b) : before + s_.state_at(), here,
                    dh_b, dc.data() + state(pseudo, b), direct_b);
                T* to = recurrent.data() + b * rows;
                std::copy_n(here, rows, to);
                std::copy_n(here, rows,
                            gradients.data() + static_cast<std::int64_t>(row(t, b)) * rows);
                if (s_.cell == CUDNN_GRU) {
                    std::copy_n(here + s_.state_at(), hidden, to + 2 * hidden);
                }
            }
            multiply<T>(false, batch_, hidden, rows, recurrent.data(), rows,
                        w + s_.recurrent_at(pseudo), hidden, 1, direct.data(), hidden);
            std::copy(direct.begin(), direct.end(),
                      dh.begin() + static_cast<std::ptrdiff_t>(state(pseudo, 0)));
        }
        multiply<T>(false, steps_ * batch_, width, rows, gradients.data(), rows, w, width, 1,
                    dinputs.data(), width);
        const double products =
            static_cast<double>(steps_ * batch_ * rows) * static_cast<double>(width + hidden);
        work_.cost(2 * products, 0);
    }
    douts = std::move(dinputs);
}

template <typename T>
void Network<T>::backward_data() {
    const Values weights = work_.load<T>(p_.weights, weights_desc());
    Values douts = load_sequences(p_.dy, p_.y_layout);
    work_.load<T>(p_.y, flat(p_.y_layout));  // the vendor's kernels read it, so it must be there
    const Values hx = load_states(p_.hx);
    const Values cx = load_states(p_.cx);
    Values dh = load_states(p_.hy);
    Values dc = load_states(s_.cell == CUDNN_LSTM ? p_.cy : 0);
    for (int layer = s_.layers - 1; layer >= 0 && !work_.faulted(); --layer) {
        back_through_layer(layer, weights, hx, cx, dh, dc, douts);
    }
    if (work_.faulted()) {
        return;
    }
    store_sequences(p_.x, p_.x_layout, douts, 0);
    store_states(p_.dhx, dh);
    if (s_.cell == CUDNN_LSTM) {
        store_states(p_.dcx, dc);
    }
}

/// The gates' gradients lie in the reserve space, where the way back by data has left them.
template <typename T>
void Network<T>::backward_weights() {
    Values inputs = load_sequences(p_.x, p_.x_layout);
    const Values hx = load_states(p_.hx);
    work_.load<T>(p_.y, flat(p_.y_layout));
    Values gradients(static_cast<std::size_t>(weights_desc().elements()));
    const std::int64_t rows = s_.rows();
    const std::int64_t hidden = s_.hidden;
    const std::int64_t all = steps_ * batch_;
    for (int layer = 0; layer < s_.layers && !work_.faulted(); ++layer) {
        for (int d = 0; d < s_.directions; ++d) {
            const int pseudo = layer * s_.directions + d;
            T* block = reserve_of(pseudo);
            if (block == nullptr) {
                return;
            }
            const std::int64_t width = s_.inputs_of(pseudo);
            Values by_input(static_cast<std::size_t>(all * rows));
            Values by_recurrence(by_input.size());
            Values before(static_cast<std::size_t>(all * hidden));
            for (std::int64_t b = 0; b < batch_; ++b) {
                for (std::int64_t i = 0; i < lengths_[static_cast<std::size_t>(b)]; ++i) {
                    const std::int64_t t = step_of(d, i, b);
                    const T* here = reserve_row(block, t, b);
                    const auto at = static_cast<std::int64_t>(row(t, b));
                    std::copy_n(here, rows, by_input.data() + at * rows);
                    std::copy_n(here, rows, by_recurrence.data() + at * rows);
                    if (s_.cell == CUDNN_GRU) {
                        std::copy_n(here + s_.state_at(), hidden,
                                    by_recurrence.data() + at * rows + 2 * hidden);
                    }
                    const T* h = i == 0
                                     ? hx.data() + state(pseudo, b)
                                     : reserve_row(block, step_of(d, i - 1, b), b) + s_.output_at();
                    std::copy_n(h, hidden, before.data() + at * hidden);
                }
            }
            T* out = gradients.data() + s_.weights_before(pseudo);
            add_products<T>(rows, width, all, by_input.data(), rows, inputs.data(), width, out);
            add_products<T>(rows, hidden, all, by_recurrence.data(), rows, before.data(), hidden,
                            out + s_.recurrent_at(pseudo));
            for (std::int64_t i = 0; i < all * rows; ++i) {
                if (s_.has_input_bias()) {
                    out[s_.input_bias_at(pseudo) + i % rows] +=
                        by_input[static_cast<std::size_t>(i)];
                }
                if (s_.has_recurrent_bias()) {
                    out[s_.recurrent_bias_at(pseudo) + i % rows] +=
                        by_recurrence[static_cast<std::size_t>(i)];
                }
            }
            work_.cost(2 * static_cast<double>(all * rows) * static_cast<double>(width + hidden),
                       0);
        }
        inputs = outputs_of(layer);
    }
    if (!work_.faulted()) {
        work_.store(p_.weights, weights_desc(), gradients, 1, p_.adds != 0 ? 1 : 0);
    }
}

template <typename Do>
void run(const SimgpuHostLaunch* launch, const Do& what) {
    Work work(launch);
    const auto p = work.params<RnnParams>();
    if (!cublas::blas::load()) {
        return;
    }
    compute_as(static_cast<cudnnDataType_t>(p.shape.type), [&]<typename T>(T) {
        Network<T> network(work, p);
        what(network);
    });
}

}  // namespace

std::int64_t RnnShape::weights_before(int pseudo_layer) const {
    std::int64_t sum = 0;
    for (int i = 0; i < pseudo_layer; ++i) {
        sum += recurrent_bias_at(i) + (has_recurrent_bias() ? rows() : 0);
    }
    return sum;
}

void host_rnn_forward(const SimgpuHostLaunch* launch) {
    run(launch, [](auto& network) { network.forward(); });
}

void host_rnn_backward_data(const SimgpuHostLaunch* launch) {
    run(launch, [](auto& network) { network.backward_data(); });
}

void host_rnn_backward_weights(const SimgpuHostLaunch* launch) {
    run(launch, [](auto& network) { network.backward_weights(); });
}

}  // namespace libswap::simgpu::cudnn
