// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/generate/training.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace libswap::cost {

namespace {

struct PendingOp {
    std::string name;
    double flops = 0;
    std::vector<Use> uses;
};

class Training {
  public:
    Training(const Network& network, const TrainingOptions& options)
        : net_(network), options_(options), param_grad_(network.params().size(), kNoTensor) {}

    Workload run() {
        for (const Param& p : net_.params()) {
            weights_.push_back(add_tensor(bytes_of(p), true));
        }
        for (std::size_t step = 0; step < options_.accumulation; ++step) micro_batch();
        update();
        return finish();
    }

  private:
    std::uint64_t bytes_of(const Param& p) const {
        return static_cast<std::uint64_t>(p.elements) * element_bytes(options_.type);
    }
    std::uint64_t bytes_of(const Value& v) const {
        const std::uint64_t each = v.bytes_each > 0 ? v.bytes_each : element_bytes(options_.type);
        return static_cast<std::uint64_t>(v.elements()) * each;
    }

    TensorIndex add_tensor(std::uint64_t bytes, bool persistent) {
        return work_.add_tensor(
            {static_cast<std::int64_t>(work_.tensors().size()), bytes, persistent});
    }

    void emit(std::string name, double flops, std::vector<Use> uses) {
        ops_.push_back({std::move(name), flops, std::move(uses)});
    }

    static void read(std::vector<Use>& uses, TensorIndex t) { uses.push_back({t, true, false}); }
    static void write(std::vector<Use>& uses, TensorIndex t) { uses.push_back({t, false, true}); }

    bool trains(ParamId p) const {
        return net_.params()[p].trainable && net_.params()[p].optimised;
    }

    void micro_batch() {
        tensors_.assign(net_.values().size(), kNoTensor);
        grads_.assign(net_.values().size(), kNoTensor);
        for (const Layer& layer : net_.layers()) forward(layer);
        const ValueId loss = net_.layers().back().outputs.front();
        if (!net_.value(loss).needs_grad) return;
        grads_[loss] = add_tensor(bytes_of(net_.value(loss)), false);
        std::vector<Use> uses;
        write(uses, grads_[loss]);
        emit("ones_like", 0, std::move(uses));
        for (std::size_t l = net_.layers().size(); l-- > 0;) backward(net_.layers()[l]);
    }

    TensorIndex tensor(ValueId v) {
        TensorIndex& t = tensors_[net_.value(v).storage];
        if (t == kNoTensor) t = add_tensor(bytes_of(net_.value(net_.value(v).storage)), false);
        return t;
    }

    void forward(const Layer& layer) {
        if (layer.view) return;
        std::vector<Use> uses;
        for (const ValueId v : layer.inputs) read(uses, tensor(v));
        for (const ParamId p : layer.params) {
            read(uses, weights_[p]);
            if (!net_.params()[p].optimised) write(uses, weights_[p]);  // running statistics
        }
        for (const ValueId v : layer.outputs) write(uses, tensor(v));
        emit(layer.name, layer.flops, std::move(uses));
    }

    void backward(const Layer& layer) {
        std::vector<TensorIndex> out_grads;
        for (const ValueId v : layer.outputs) {
            if (grads_[v] != kNoTensor) out_grads.push_back(grads_[v]);
        }
        if (out_grads.empty() || !net_.value(layer.outputs.front()).needs_grad) return;
        switch (layer.backward) {
            case Backward::None:
                break;
            case Backward::PassThrough:
                for (const ValueId v : layer.inputs) {
                    if (net_.value(v).needs_grad) accept(v, out_grads.front());
                }
                break;
            case Backward::Fused:
                fused(layer, out_grads);
                break;
            case Backward::Split:
                split(layer, out_grads);
                break;
        }
    }

    void fused(const Layer& layer, const std::vector<TensorIndex>& out_grads) {
        std::vector<Use> uses;
        for (const TensorIndex g : out_grads) read(uses, g);
        for (const ValueId v : layer.saved) read(uses, tensor(v));
        if (layer.name != "embedding" && layer.name != "add_param") {
            for (const ParamId p : layer.params) {
                if (net_.params()[p].optimised) read(uses, weights_[p]);
            }
        }
        std::vector<std::pair<ValueId, TensorIndex>> made;
        for (const ValueId v : layer.inputs) {
            if (!net_.value(v).needs_grad) continue;
            made.emplace_back(v, add_tensor(bytes_of(net_.value(v)), false));
            write(uses, made.back().second);
        }
        const auto param_grads = make_param_grads(layer, uses);
        if (made.empty() && param_grads.empty()) return;
        emit(layer.name + "_backward", 2 * layer.flops, std::move(uses));
        for (const auto& [v, g] : made) accept(v, g);
        accept_param_grads(param_grads);
    }

    void split(const Layer& layer, const std::vector<TensorIndex>& out_grads) {
        for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
            const ValueId v = layer.inputs[i];
            if (!net_.value(v).needs_grad) continue;
            std::vector<Use> uses;
            for (const TensorIndex g : out_grads) read(uses, g);
            if (!layer.params.empty()) read(uses, weights_[layer.params.front()]);
            for (std::size_t other = 0; other < layer.inputs.size(); ++other) {
                if (other != i) read(uses, tensor(layer.inputs[other]));
            }
            const TensorIndex g = add_tensor(bytes_of(net_.value(v)), false);
            write(uses, g);
            emit(layer.name + "_backward_data", layer.flops, std::move(uses));
            accept(v, g);
        }
        std::vector<Use> uses;
        const auto param_grads = make_param_grads(layer, uses);
        if (param_grads.empty()) return;
        for (const TensorIndex g : out_grads) read(uses, g);
        for (const ValueId v : layer.inputs) read(uses, tensor(v));
        emit(layer.name + "_backward_weight", layer.flops, std::move(uses));
        accept_param_grads(param_grads);
    }

    using ParamGrads = std::vector<std::pair<ParamId, TensorIndex>>;

    ParamGrads make_param_grads(const Layer& layer, std::vector<Use>& uses) {
        ParamGrads made;
        for (const ParamId p : layer.params) {
            if (!trains(p)) continue;
            made.emplace_back(p, add_tensor(bytes_of(net_.params()[p]), false));
            write(uses, made.back().second);
        }
        return made;
    }

    void accept_param_grads(const ParamGrads& made) {
        for (const auto& [p, g] : made) {
            if (param_grad_[p] == kNoTensor) {
                param_grad_[p] = g;
                continue;
            }
            std::vector<Use> uses;
            read(uses, g);
            read(uses, param_grad_[p]);
            write(uses, param_grad_[p]);
            emit("accumulate_grad", net_.params()[p].elements, std::move(uses));
        }
    }

    /// A gradient of a value; where there is one already, the sum of both is a new one, as either
    /// may be another value's too.
    void accept(ValueId v, TensorIndex g) {
        if (grads_[v] == kNoTensor) {
            grads_[v] = g;
            return;
        }
        const TensorIndex sum = add_tensor(bytes_of(net_.value(v)), false);
        std::vector<Use> uses;
        read(uses, grads_[v]);
        read(uses, g);
        write(uses, sum);
        emit("add_grad", net_.value(v).elements(), std::move(uses));
        grads_[v] = sum;
    }

    void update() {
        const int states = options_.optimizer == Optimizer::Adam ? 2 : 1;
        for (ParamId p = 0; p < net_.params().size(); ++p) {
            if (param_grad_[p] == kNoTensor) continue;
            std::vector<Use> uses;
            read(uses, param_grad_[p]);
            uses.push_back({weights_[p], true, true});
            for (int s = 0; s < states; ++s) {
                // States are fp32 whatever the parameters are; with fp16 there is a master copy
                // too.
                const auto bytes = static_cast<std::uint64_t>(net_.params()[p].elements) *
                                   std::max<std::uint64_t>(4, element_bytes(options_.type));
                uses.push_back({add_tensor(bytes, true), true, true});
            }
            if (options_.type == DataType::Fp16) {
                const auto bytes = static_cast<std::uint64_t>(net_.params()[p].elements) * 4;
                uses.push_back({add_tensor(bytes, true), true, true});
            }
            emit(states == 2 ? "adam" : "sgd", (states == 2 ? 12 : 4) * net_.params()[p].elements,
                 std::move(uses));
        }
    }

    double operand_bytes(const PendingOp& op) const {
        double bytes = 0;
        for (const Use& use : op.uses) {
            bytes += static_cast<double>(work_.tensors()[use.tensor].bytes);
        }
        return bytes;
    }

    Workload finish() {
        std::vector<std::size_t> last(work_.tensors().size(), SIZE_MAX);
        for (std::size_t i = 0; i < ops_.size(); ++i) {
            for (const Use& use : ops_[i].uses) last[use.tensor] = i;
        }
        std::vector<std::vector<TensorIndex>> frees(ops_.size());
        for (TensorIndex t = 0; t < last.size(); ++t) {
            if (!work_.tensors()[t].persistent && last[t] != SIZE_MAX) frees[last[t]].push_back(t);
        }
        for (std::size_t i = 0; i < ops_.size(); ++i) {
            const PendingOp& op = ops_[i];
            const double us =
                roofline_us(options_.ceilings, op.flops, operand_bytes(op), options_.type);
            work_.add_op(us, 0, op.uses, frees[i], op.name);
        }
        return std::move(work_);
    }

    const Network& net_;
    const TrainingOptions& options_;
    Workload work_;
    std::vector<PendingOp> ops_;
    std::vector<TensorIndex> weights_;
    std::vector<TensorIndex> param_grad_;
    std::vector<TensorIndex> tensors_;  // of the micro-batch, by storage
    std::vector<TensorIndex> grads_;    // of the micro-batch, by value
};

}  // namespace

Workload training_iteration(const Network& network, const TrainingOptions& options) {
    return Training(network, options).run();
}

}  // namespace libswap::cost
