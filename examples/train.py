#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Trains a GPT or a ResNet made of PyTorch's own modules, on data it makes itself.

Prints the loss and the time of each step, a digest of the parameters and one line of memory figures. The
same seed gives the same run; --device cpu is for comparison.

    LD_PRELOAD=libswap.so python examples/train.py --model gpt
"""

import argparse
import contextlib
import ctypes
import hashlib
import math
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    """Causal self-attention; `plain` spells it out as matrix products and a softmax."""

    def __init__(self, width, heads, context, plain):
        super().__init__()
        self.heads, self.plain = heads, plain
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        mask = torch.full((context, context), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        batch, length, width = x.shape

        def split(y):
            return y.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        if self.plain:
            scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
            weights = (scores + self.mask[:length, :length]).softmax(-1)
            y = weights @ v
        else:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, context, plain):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, context, plain)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.recompute = args.checkpoint
        self.tokens = nn.Embedding(args.vocabulary, args.width)
        self.places = nn.Embedding(args.context, args.width)
        plain = args.attention == "plain"
        self.blocks = nn.ModuleList(
            Block(args.width, args.heads, args.context, plain) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.width)
        self.head = nn.Linear(args.width, args.vocabulary, bias=False)
        self.register_buffer("order", torch.arange(args.context), persistent=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(self.order[:tokens.shape[1]])
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(self.norm(x)).flatten(0, 1)


class Residual(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.short = nn.Sequential()
        if stride != 1 or inside != outside:
            self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(y)) + self.short(x))


class Bottleneck(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        middle = outside // 4
        self.conv1 = nn.Conv2d(inside, middle, 1, bias=False)
        self.conv2 = nn.Conv2d(middle, middle, 3, stride, 1, bias=False)
        self.conv3 = nn.Conv2d(middle, outside, 1, bias=False)
        self.norm1, self.norm2, self.norm3 = nn.BatchNorm2d(middle), nn.BatchNorm2d(middle), nn.BatchNorm2d(outside)
        self.short = nn.Sequential()
        if stride != 1 or inside != outside:
            self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = functional.relu(self.norm1(self.conv1(x)))
        y = functional.relu(self.norm2(self.conv2(y)))
        return functional.relu(self.norm3(self.conv3(y)) + self.short(x))


class ResNet(nn.Module):
    """ResNet-18 with --layers 2; each of its four stages has that many residual blocks. ResNet-50 has others."""

    def __init__(self, args):
        super().__init__()
        self.recompute = args.checkpoint
        width = args.width
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        kind, widening, stages = Residual, 1, [args.layers] * 4
        if args.model == "resnet50":
            kind, widening, stages = Bottleneck, 4, [3, 4, 6, 3]
        blocks, inside = [], width
        for stage, layers in enumerate(stages):
            outside = widening * width << stage
            for i in range(layers):
                blocks.append(kind(inside, outside, 2 if stage > 0 and i == 0 else 1))
                inside = outside
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(inside, args.classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(x.mean((2, 3)))


class Data(torch.utils.data.Dataset):
    """Sequences in which a token mostly follows from the one before it; images whose brightest
    colour is their class."""

    def __init__(self, args, count, seed):
        self.args, self.count, self.seed = args, count, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        args = self.args
        random = torch.Generator().manual_seed(self.seed * 1000003 + index)
        if not args.gpt:
            label = int(torch.randint(args.classes, (1,), generator=random))
            image = torch.randn(3, args.image, args.image, generator=random) * 0.5
            image[label % 3] += 1 + label // 3
            return image, torch.tensor(label)
        steps = torch.randint(1, 4, (args.context + 1,), generator=random)
        tokens = (steps.cumsum(0) * 7) % args.vocabulary
        return tokens[:-1], tokens[1:]


# Other defaults than those below.
MODELS = {
    "gpt": {},
    "gpt2": {"layers": 12, "width": 768, "heads": 12, "context": 1024, "vocabulary": 50257, "attention": "sdpa"},
    "resnet": {},
    "resnet50": {"image": 224, "classes": 1000},
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=list(MODELS), default="gpt",
                        help="gpt2 and resnet50 have the published shapes, unless options say otherwise")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--layers", type=int, help="blocks of the GPT (4), or of each stage of the ResNet (2)")
    parser.add_argument("--width", type=int, help="of the GPT (128), or of the ResNet's first stage (64)")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64, help="tokens in a sequence")
    parser.add_argument("--vocabulary", type=int, default=256)
    parser.add_argument("--image", type=int, default=64, help="side of the images")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--attention", choices=["plain", "sdpa"], default="plain")
    parser.add_argument("--optimizer", choices=["adamw", "sgd"], default="adamw")
    parser.add_argument("--implementation", choices=["foreach", "fused", "loop"], default="foreach")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--amp", choices=["none", "bf16", "fp16"], default="none")
    parser.add_argument("--accumulate", type=int, default=1, help="batches per step")
    parser.add_argument("--validate-every", type=int, default=0, help="steps between validation batches")
    parser.add_argument("--variable", action="store_true", help="sequences of several lengths")
    parser.add_argument("--checkpoint", action="store_true", help="recompute blocks in the backward pass")
    parser.add_argument("--save-on-cpu", action="store_true",
                        help="autograd keeps what it saves in pinned host memory: PyTorch's own way to need less of the GPU's")
    parser.add_argument("--workers", type=int, default=0, help="of the DataLoader; memory is pinned then")
    parser.add_argument("--benchmark", action="store_true", help="cudnn.benchmark")
    parser.add_argument("--seed", type=int, default=1)
    parser.set_defaults(**MODELS[parser.parse_known_args()[0].model])
    args = parser.parse_args()
    args.gpt = args.model.startswith("gpt")
    args.layers = args.layers or (4 if args.gpt else 2)
    args.width = args.width or (128 if args.gpt else 64)
    return args


def make_optimizer(args, model):
    how = {} if args.device == "cpu" else {"foreach": args.implementation == "foreach",
                                           "fused": args.implementation == "fused"}
    if args.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, **how)
    return torch.optim.AdamW(model.parameters(), lr=args.lr, **how)


def digest(model):
    """Over the bits of all parameters and buffers that are saved, in order."""
    sums = hashlib.sha256()
    for value in model.state_dict().values():
        bits = value.detach().cpu().contiguous()
        sums.update(ctypes.string_at(bits.data_ptr(), bits.numel() * bits.element_size()))
    return sums.hexdigest()[:16]


def main():
    args = parse()
    torch.manual_seed(args.seed)
    torch.backends.cudnn.benchmark = args.benchmark
    on_gpu = args.device != "cpu"
    # Made on the CPU, so that both devices start with the same bits.
    model = (GPT if args.gpt else ResNet)(args).to(args.device)
    optimizer = make_optimizer(args, model)
    scaler = torch.amp.GradScaler(enabled=args.amp == "fp16")
    batches = args.steps * args.accumulate
    loader = torch.utils.data.DataLoader(Data(args, batches * args.batch, args.seed), args.batch,
                                         num_workers=args.workers, pin_memory=on_gpu and args.workers > 0)
    held_out = Data(args, args.batch, args.seed + 1)
    held_out = [torch.stack(part) for part in zip(*(held_out[i] for i in range(args.batch)))]

    def loss_of(inputs, targets):
        inputs = inputs.to(args.device, non_blocking=True)
        targets = targets.to(args.device, non_blocking=True)
        lower = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(args.amp)
        saving = torch.autograd.graph.save_on_cpu(pin_memory=on_gpu) if args.save_on_cpu else contextlib.nullcontext()
        with saving, torch.autocast(args.device, lower) if lower else contextlib.nullcontext():
            return functional.cross_entropy(model(inputs), targets.flatten())

    data = iter(loader)
    for step in range(1, args.steps + 1):
        start = time.perf_counter()
        total = 0.0
        for part in range(args.accumulate):
            inputs, targets = next(data)
            if args.variable and args.gpt:
                length = args.context - (step + part) % 4 * (args.context // 8)
                inputs, targets = inputs[:, :length], targets[:, :length]
            loss = loss_of(inputs, targets) / args.accumulate
            scaler.scale(loss).backward()
            total += loss.item()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if on_gpu:
            torch.cuda.synchronize()
        print(f"step {step} loss {total:.6f} time {(time.perf_counter() - start) * 1e3:.1f} ms", flush=True)
        if args.validate_every and step % args.validate_every == 0:
            model.eval()
            with torch.no_grad():
                print(f"validation {step} loss {loss_of(*held_out).item():.6f}", flush=True)
            model.train()
    print("digest", digest(model))
    if on_gpu:
        stats = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), *torch.cuda.mem_get_info()]
        print("memory: allocated peak {:.1f} MiB, reserved peak {:.1f} MiB, free {:.1f} of {:.1f} MiB".format(
            *(value / 2**20 for value in stats)))


if __name__ == "__main__":
    main()
