# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Networks whose control flow or indices hang on what the device computed, each trained for a few steps: functions of scenarios.py
that take a device. On the CPU they print what PyTorch computes there."""
import ctypes
import hashlib

import torch
from torch import nn
from torch.nn import functional


def digest(tensors):
    sums = hashlib.sha256()
    for value in tensors:
        bits = value.detach().cpu().contiguous()
        sums.update(ctypes.string_at(bits.data_ptr(), bits.numel() * bits.element_size()))
    return sums.hexdigest()[:16]


def train(model, optimizer, steps, loss_of):
    """Prints each step's loss, what the gradients' norm is, and a digest of all parameters."""
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(step)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print("loss", loss.item(), norm.item())
    print("digest", digest(model.state_dict().values()))


class Experts(nn.Module):
    """Each token goes to the two experts that a router likes most: as many rows per expert as the data decide."""

    def __init__(self, width, experts):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)) for _ in range(experts))

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        chances = self.router(tokens).softmax(-1)
        weights, chosen = torch.topk(chances, 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, places = torch.where(chosen == number)
            if rows.numel():
                out = out.index_add(0, rows, expert(tokens[rows]) * weights[rows, places, None])
        load = functional.one_hot(chosen, len(self.experts)).float().mean((0, 1))
        return out.reshape(x.shape), len(self.experts) * (load * chances.mean(0)).sum()


class ExpertBlock(nn.Module):
    def __init__(self, width, heads, experts):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.experts = Experts(width, experts)

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.first(x)).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5).masked_fill(mask, float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))
        more, balance = self.experts(self.second(x))
        return x + more, balance


class ExpertGPT(nn.Module):
    def __init__(self, words=512, width=128, context=48, blocks=3, experts=8):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(ExpertBlock(width, 4, experts) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = torch.triu(torch.ones(length, length, device=tokens.device), 1).bool()
        x = self.words(tokens) + self.places(torch.arange(length, device=tokens.device))
        balance = 0
        for block in self.blocks:
            x, more = block(x, mask)
            balance = balance + more
        return self.head(self.norm(x)), balance


def experts(device):
    """A mixture of experts: topk, where, gathered rows, index_add; a prompt continued by the best of the sorted words."""
    torch.manual_seed(7)
    model = ExpertGPT().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = [torch.randint(512, (12, 49)) for _ in range(2)]

    def loss_of(step):
        tokens = batches[step % 2].to(device)
        logits, balance = model(tokens[:, :-1])
        return functional.cross_entropy(logits.reshape(-1, 512), tokens[:, 1:].reshape(-1)) + 0.01 * balance

    train(model, optimizer, 6, loss_of)
    tokens = batches[0][:1, :8].to(device)
    with torch.no_grad():
        for _ in range(6):
            ordered = torch.sort(model(tokens)[0][0, -1], descending=True).indices
            tokens = torch.cat([tokens, ordered[:1][None]], 1)
    print("continued", tokens[0, 8:].tolist())


class Recommender(nn.Module):
    """Tables by hashed identifiers, bags of them, products of all pairs."""
    ROWS = 12000

    def __init__(self, width=32):
        super().__init__()
        self.users = nn.Embedding(self.ROWS, width)
        self.histories = nn.EmbeddingBag(self.ROWS, width, mode="mean")
        self.tags = nn.EmbeddingBag(self.ROWS, width, mode="sum")
        self.dense = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, width))
        self.top = nn.Sequential(nn.Linear(width + 6, 256), nn.ReLU(), nn.Linear(256, 1))

    def hashed(self, identifiers):
        return (identifiers * 2654435761 + 97) % self.ROWS

    def forward(self, dense, users, histories, tags, weights):
        features = [self.dense(dense), self.users(self.hashed(users)), self.histories(self.hashed(histories)),
                    self.tags(self.hashed(tags), per_sample_weights=weights)]
        stacked = torch.stack(features, 1)
        products = stacked @ stacked.transpose(1, 2)
        rows, columns = torch.tril_indices(4, 4, -1, device=dense.device)
        return self.top(torch.cat([features[0], products[:, rows, columns]], 1))[:, 0]


def recommender(device):
    """Large batches of indices into embedding tables; what was seen is counted, the surest half sorted out."""
    torch.manual_seed(8)
    model = Recommender().to(device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    batch = 4096
    data = [torch.randn(batch, 13), torch.randint(1 << 40, (batch,)), torch.randint(1 << 40, (batch, 10)), torch.randint(5000, (batch, 4)), torch.rand(batch, 4)]
    clicks = (torch.rand(batch) < 0.3).float()

    def loss_of(step):
        dense, users, histories, tags, weights = (part.to(device) for part in data)
        logits = model(dense, users, histories, tags, weights)
        losses = functional.binary_cross_entropy_with_logits(logits, clicks.to(device), reduction="none")
        seen, inverse, counts = torch.unique(tags, return_inverse=True, return_counts=True)
        assert torch.equal(seen[inverse], tags) and counts.sum().item() == tags.numel()
        buckets = torch.bincount(torch.bucketize(logits.detach(), torch.linspace(-1, 1, 9).to(device)), minlength=10)
        assert buckets.sum().item() == batch
        kept = torch.argsort(losses.detach(), stable=True)[batch // 2:]
        return losses.index_select(0, kept).mean() + losses.mean()

    train(model, optimizer, 6, loss_of)


class Tagger(nn.Module):
    def __init__(self, words=3000, width=192, hidden=256, tags=40):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.encoder = nn.GRU(width, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.step = nn.GRUCell(2 * hidden + tags, hidden)
        self.tag = nn.Linear(hidden, tags)
        self.tags = tags

    def forward(self, words, tags):
        """Each tag by a cell that sees the word and the tag before."""
        encoded, last = self.encoder(self.embed(words))
        state, before, logits = last[-1], torch.zeros(len(words), self.tags, device=words.device), []
        for i in range(words.shape[1]):
            state = self.step(torch.cat([encoded[:, i], before], 1), state)
            logits.append(self.tag(state))
            before = functional.one_hot(tags[:, i], self.tags).float()
        return torch.stack(logits, 1)


def tagger(device):
    """A bidirectional GRU and a GRU cell step by step; the words of a batch, each once, weigh their loss."""
    torch.manual_seed(9)
    model = Tagger().to(device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    words, tags = torch.randint(3000, (32, 20)), torch.randint(40, (32, 20))

    def loss_of(step):
        x, y = words.to(device), tags.to(device)
        _, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        losses = functional.cross_entropy(model(x, y).reshape(-1, 40), y.reshape(-1), reduction="none")
        return (losses / counts[inverse].reshape(-1)).mean()

    train(model, optimizer, 5, loss_of)


class Volumes(nn.Module):
    """An encoder and decoder of volumes: Conv3d, ConvTranspose3d, group norm, interpolation."""

    def __init__(self, width=24):
        super().__init__()
        self.down = nn.Sequential(nn.Conv3d(1, width, 3, padding=1), nn.GroupNorm(6, width), nn.SiLU(), nn.Conv3d(width, 2 * width, 3, 2, 1), nn.GroupNorm(6, 2 * width))
        self.up = nn.ConvTranspose3d(2 * width, width, 2, 2)
        self.out = nn.Sequential(nn.GroupNorm(6, width), nn.SiLU(), nn.Conv3d(width, 5, 1))

    def forward(self, x):
        small = self.down(x)
        again = functional.interpolate(functional.leaky_relu(small[:, ::2]), scale_factor=2, mode="trilinear", align_corners=False)
        return self.out(self.up(functional.elu(small)) + again)


def volumes(device):
    """Segments volumes: losses per voxel, of which the largest are chosen."""
    torch.manual_seed(10)
    model = Volumes().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    x, y = torch.randn(2, 1, 16, 24, 24), torch.randint(5, (2, 16, 24, 24))

    def loss_of(step):
        losses = functional.cross_entropy(model(x.to(device)), y.to(device), reduction="none").flatten()
        return torch.topk(losses, losses.numel() // 4).values.mean()

    train(model, optimizer, 5, loss_of)


class Attending(nn.Module):
    def __init__(self, words=400, width=128, context=64):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(context, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        return self.head(self.layers(self.embed(tokens) + self.places[:length], mask=mask, is_causal=True))


def attending(device):
    """nn.TransformerEncoder: scaled dot products in float32 and in bf16, with dropout drawn on the device; the next words are drawn."""
    torch.manual_seed(11)
    model = Attending().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batch = torch.randint(400, (16, 65))

    def loss_of(step):
        tokens = batch.to(device)
        with torch.autocast(device, torch.bfloat16, enabled=step % 2 == 1):
            logits = model(tokens[:, :-1])
        return functional.cross_entropy(logits.float().reshape(-1, 400), tokens[:, 1:].reshape(-1))

    train(model, optimizer, 6, loss_of)
    model.eval()
    tokens = batch[:2, :8].to(device)
    with torch.no_grad():
        for _ in range(4):
            chances = model(tokens)[:, -1].softmax(-1)
            tokens = torch.cat([tokens, torch.multinomial(chances, 1)], 1)
    print("drawn", tokens[:, 8:].tolist(), torch.randperm(1000, device=device)[:4].tolist())


NETWORKS = (experts, recommender, tagger, volumes, attending)
