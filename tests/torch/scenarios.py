#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""What training scripts do beside plain steps, each small: scenarios.py NAME [cpu].

Prints the same lines in every run, whatever moves behind its back, and at the end `peak N MiB`.
"""
import collections
import copy
import ctypes
import hashlib
import io
import os
import pathlib
import sys
import tempfile

import torch
from torch import nn

from loops import LOOPS
from networks import NETWORKS, digest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

WIDTH, DEPTH, BATCH = 640, 6, 128


class Trainer:
    """A deep perceptron with AdamW on data of its own; some 50 MiB."""

    def __init__(self, seed=1):
        torch.manual_seed(seed)
        layers = []
        for _ in range(DEPTH):
            layers += [nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH)]
        self.model = nn.Sequential(*layers, nn.Linear(WIDTH, 10)).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.inputs = torch.randn(BATCH, WIDTH).cuda()
        self.targets = torch.randint(10, (BATCH,)).cuda()

    def loss(self):
        return nn.functional.cross_entropy(self.model(self.inputs), self.targets)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss

    def digest(self):
        return digest(self.model.state_dict().values())


def side_stream():
    """Batches come on a stream of their own; record_stream keeps their memory."""
    trainer, side = Trainer(), torch.cuda.Stream()
    for i in range(6):
        with torch.cuda.stream(side):
            batch = torch.full((BATCH, WIDTH), 0.1 * i).pin_memory().cuda(non_blocking=True)
            batch = batch * 2 + 1
        torch.cuda.current_stream().wait_stream(side)
        batch.record_stream(torch.cuda.current_stream())
        trainer.inputs = trainer.inputs + batch
        del batch
        print("loss", trainer.step().item())
    print(trainer.digest())


def graph():
    """A step captured and replayed; other work in between pushes its memory out."""
    trainer = Trainer()
    trainer.optimizer = torch.optim.AdamW(trainer.model.parameters(), lr=1e-3, capturable=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            trainer.step()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    trainer.optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(captured):
        loss = trainer.loss()
        loss.backward()
        trainer.optimizer.step()
    for i in range(4):
        trainer.inputs.mul_(0.9)
        captured.replay()
        print("loss", loss.item())
        between = [torch.full((4 << 20,), float(i), device="cuda") for _ in range(3)]
        print("between", sum(x.sum().item() for x in between))
        del between
    print(trainer.digest())


def compiled():
    """A step that torch.compile turns into CUDA graphs of PyTorch's own kernels (mode="reduce-overhead" makes its own by Triton)."""
    trainer = Trainer()
    trainer.model = torch.compile(trainer.model, backend="cudagraphs")
    for _ in range(6):
        torch.compiler.cudagraph_mark_step_begin()
        print("loss", trainer.step().item())
        between = [torch.full((4 << 20,), 1.0, device="cuda") for _ in range(3)]
        print("between", sum(x.sum().item() for x in between))
        del between
    print(trainer.digest())


def mem_pool():
    """Tensors of a pool of their own, beside training."""
    trainer, pool = Trainer(), torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = [torch.full((1 << 20,), float(i), device="cuda") for i in range(8)]
    for _ in range(3):
        trainer.step()
        for value in kept:
            value.add_(1)
    print(sum(value.double().sum().item() for value in kept), trainer.digest())
    del kept


def profiler():
    """torch.profiler begins in the middle: libswap's own use of CUPTI must not get into its way. What it sees of the
    device, but for what libswap puts there."""
    trainer = Trainer()
    for _ in range(3):
        trainer.step()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as profile:
        for _ in range(3):
            trainer.step()
        torch.cuda.synchronize()
    for _ in range(4):
        trainer.step()
    rows = collections.Counter(event.name.split("<")[0][-48:] for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA
                               and not event.name.startswith(("libswap", "Memcpy")))
    print("kernels", sum(rows.values()) > 100, sorted(rows.items()), trainer.digest())


def save():
    """A checkpoint in mid-training goes on as the training itself."""
    trainer = Trainer()
    for _ in range(2):
        trainer.step()
    saved = io.BytesIO()
    torch.save({"model": trainer.model.state_dict(), "optimizer": trainer.optimizer.state_dict()}, saved)
    for _ in range(2):
        trainer.step()
    first = trainer.digest()
    saved.seek(0)
    state = torch.load(saved, map_location="cuda")
    trainer.model.load_state_dict(state["model"])
    trainer.optimizer.load_state_dict(state["optimizer"])
    del state
    for _ in range(2):
        trainer.step()
    print(first, first == trainer.digest())


def out_of_memory():
    """An allocation beyond all there is fails as PyTorch's error, and training goes on."""
    trainer = Trainer()
    trainer.step()
    caught = False
    try:
        torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:  # torch.OutOfMemoryError, but AcceleratorError of the uncached allocator
        caught = "out of memory" in str(error)
    for _ in range(2):
        trainer.step()
    print("caught", caught, trainer.digest())


def threads():
    """Two models trained by two threads on streams of their own."""
    import threading
    trainers = [Trainer(1), Trainer(2)]
    torch.cuda.synchronize()

    def train(trainer):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(3):
                trainer.step()
            torch.cuda.current_stream().synchronize()

    workers = [threading.Thread(target=train, args=(trainer,)) for trainer in trainers]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(*(trainer.digest() for trainer in trainers))


def no_grad_views():
    """Interior pointers: views, slices, transposes and in-place updates of one large buffer."""
    base = torch.arange(8 << 20, dtype=torch.float32).reshape(2048, 4096).cuda()
    others = [torch.full((4 << 20,), float(i), device="cuda") for i in range(6)]
    for i in range(8):
        part = base[i * 256:(i + 1) * 256, i::3]
        part.mul_(0.5).add_(i)
        base.t()[i * 100:i * 100 + 50] += others[i % 6][:2048].reshape(1, 2048)
        others[i % 6].copy_(base.flatten()[i:i + (4 << 20)])
    print(digest([base, *others]))


def ctypes_runtime():
    """A program that calls libcudart by ctypes, beside PyTorch."""
    runtime = ctypes.CDLL("libcudart.so.13")
    mib, buffers = 1 << 20, []
    for i in range(24):
        pointer = ctypes.c_void_p()
        assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(4 * mib)) == 0
        assert runtime.cudaMemset(pointer, i, ctypes.c_size_t(4 * mib)) == 0
        buffers.append(pointer)
    host = ctypes.create_string_buffer(4 * mib)
    sums = hashlib.sha256()
    for pointer in buffers:
        assert runtime.cudaMemcpy(host, pointer, ctypes.c_size_t(4 * mib), 2) == 0
        sums.update(host.raw)
        assert runtime.cudaFree(pointer) == 0
    print(sums.hexdigest()[:16])


def data_parallel():
    """Two processes that average gradients over gloo."""
    import torch.multiprocessing as processes
    with tempfile.TemporaryDirectory() as folder:
        processes.start_processes(train_in_parallel, (folder,), nprocs=2, start_method="spawn")
        print(*((pathlib.Path(folder) / str(rank)).read_text() for rank in range(2)))


def train_in_parallel(rank, folder):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    trainer = Trainer()
    model = nn.parallel.DistributedDataParallel(trainer.model)
    for i in range(3):
        trainer.optimizer.zero_grad(set_to_none=True)
        outputs = model(trainer.inputs * (rank + 1))
        nn.functional.cross_entropy(outputs, trainer.targets).backward()
        trainer.optimizer.step()
    (pathlib.Path(folder) / str(rank)).write_text(trainer.digest())
    torch.distributed.destroy_process_group()


def indexing():
    """Boolean masks, places, ranges and indices have true results: the host and later launches decide by them."""
    trainer = Trainer()
    torch.manual_seed(2)
    values, rows = torch.randn(64, 32, 40), torch.tensor([3, 1, -1, 60])
    on_gpu, rows_there = values.cuda(), rows.cuda()
    for step in range(6):
        mask = on_gpu > 0.3 * step
        found = mask.nonzero()
        picked = on_gpu[mask]
        on_gpu[rows_there] = on_gpu[:4].clone()
        on_gpu[on_gpu < -1.5] = -1.5
        expected = values > 0.3 * step
        chosen = values[expected]
        values[rows] = values[:4].clone()
        values[values < -1.5] = -1.5
        order = torch.arange(BATCH - 1, -1, -1, device="cuda")
        trainer.inputs = trainer.inputs[order]
        keep = trainer.targets != step
        loss = nn.functional.cross_entropy(trainer.model(trainer.inputs)[keep], trainer.targets[keep])
        trainer.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        trainer.optimizer.step()
        assert torch.equal(found.cpu(), expected.nonzero()) and torch.equal(picked.cpu(), chosen) and torch.equal(on_gpu.cpu(), values)
        assert keep.sum().item() == (trainer.targets.cpu() != step).sum().item()
        print("loss", loss.item())
    print(trainer.digest())


class Denoiser(nn.Module):
    """A small U-Net: group norm, SiLU, dropout, up- and downsampling, concatenation, a time's embedding."""

    def __init__(self, width=48, times=64):
        super().__init__()
        self.times = times
        self.time = nn.Sequential(nn.Linear(times, times), nn.SiLU(), nn.Linear(times, width))
        self.first, self.down = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.middle = nn.Sequential(nn.GroupNorm(8, 2 * width), nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(2 * width, 2 * width, 3, padding=1))
        self.last = nn.Sequential(nn.GroupNorm(8, 3 * width), nn.SiLU(), nn.Conv2d(3 * width, 3, 3, padding=1))

    def forward(self, x, t):
        rates = torch.exp(-9.2 * torch.arange(self.times // 2, device=x.device) / (self.times // 2))
        angles = t.float()[:, None] * rates
        x = self.first(x) + self.time(torch.cat([angles.sin(), angles.cos()], 1))[:, :, None, None]
        y = self.down(x)
        y = nn.functional.interpolate(y + self.middle(y), scale_factor=2, mode="nearest")
        return self.last(torch.cat([y, x], 1))


def diffusion():
    """A denoiser in bf16 and channels last, with gradient clipping and an average of its weights."""
    torch.manual_seed(5)
    model = Denoiser().cuda().to(memory_format=torch.channels_last)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
    for _ in range(5):
        images = torch.rand(8, 3, 48, 48).cuda().to(memory_format=torch.channels_last)
        noise, t = torch.randn(8, 3, 48, 48).cuda(), torch.randint(100, (8,)).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.mse_loss(model(images + noise, t).float(), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        torch._foreach_lerp_(list(average.parameters()), [p.detach() for p in model.parameters()], 0.01)
        print("loss", loss.item(), norm.item())
    print(digest([*model.state_dict().values(), *average.state_dict().values()]))


class Language(nn.Module):
    def __init__(self, words=2000, width=256, hidden=384):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.proj = nn.Linear(2 * hidden, width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(x), lengths, batch_first=True, enforce_sorted=False)
        out, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.shape[1])
        return self.head(torch.tanh(self.proj(out)))


def packed():
    """An LSTM over packed sequences of several lengths, tied weights, gradient clipping, a learning rate that changes."""
    torch.manual_seed(3)
    model = Language().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=6)
    for _ in range(4):
        x, lengths = torch.randint(2000, (16, 24)), torch.randint(5, 25, (16,))
        lengths[0] = 24
        mask = (torch.arange(24)[None] < lengths[:, None]).cuda()
        x = x.cuda()
        loss = nn.functional.cross_entropy(model(x, lengths)[:, :-1][mask[:, 1:]], x[:, 1:][mask[:, 1:]])
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        print("loss", loss.item(), norm.item())
    print(digest(model.state_dict().values()))


SCENARIOS = {f.__name__: f for f in (side_stream, graph, compiled, mem_pool, profiler, save, out_of_memory, threads,
                                     no_grad_views, ctypes_runtime, data_parallel, indexing, diffusion, packed, *LOOPS)}

if __name__ == "__main__":
    networks = {f.__name__: f for f in NETWORKS}
    if sys.argv[1] in networks:
        networks[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else "cuda")
    else:
        SCENARIOS[sys.argv[1]]()
    torch.cuda.synchronize()
    print(f"peak {torch.cuda.max_memory_reserved() >> 20} MiB", file=sys.stderr)
    sys.stdout.flush()
