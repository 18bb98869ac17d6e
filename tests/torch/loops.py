# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""Training loops whose steps are not all alike: other work in between, other sizes, other models."""
import gc

import torch
from torch import nn
from torch.nn import functional

from networks import digest


class Gated(nn.Module):
    """A block as of Llama: RMS norm, rotary positions by complex numbers, grouped heads, a gated perceptron."""

    def __init__(self, width=256, heads=8, groups=2):
        super().__init__()
        self.each = width // heads
        self.query, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(width, groups * self.each, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)

    def turned(self, x, start):
        rates = 10000 ** (-torch.arange(0, self.each, 2, device=x.device) / self.each)
        angles = torch.arange(start, start + x.shape[2], device=x.device)[:, None] * rates
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2).type_as(x)

    def forward(self, x, cache=None):
        y, start = self.norm1(x), cache[0].shape[2] if cache else 0
        q, k, v = (f(y).unflatten(-1, (-1, self.each)).transpose(1, 2) for f in (self.query, self.key, self.value))
        q, k = self.turned(q, start), self.turned(k, start)
        if cache is not None:
            cache[:] = [torch.cat([old, new], 2) for old, new in zip(cache, (k, v))] if cache else [k, v]
            k, v = cache
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=start == 0, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Speaker(nn.Module):
    def __init__(self, words=1000, width=256, layers=4):
        super().__init__()
        self.embed, self.norm = nn.Embedding(words, width), nn.RMSNorm(width)
        self.blocks = nn.ModuleList(Gated(width) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, x, caches=None):
        x = self.embed(x)
        for i, block in enumerate(self.blocks):
            x = block(x, caches[i] if caches else None)
        return self.head(self.norm(x))

    @torch.no_grad()
    def say(self, words, count):
        """Draws words one by one, keys and values kept in memory that grows."""
        caches, said = [[] for _ in self.blocks], words
        for _ in range(count):
            best, index = self(words, caches)[:, -1].topk(20)
            words = index.gather(1, torch.multinomial((best / 0.8).softmax(-1), 1))
            said = torch.cat([said, words], 1)
        return said


def generating():
    """A language model says something after every third step."""
    torch.manual_seed(6)
    model = Speaker().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(6):
        words = torch.randint(1000, (4, 33)).cuda()
        loss = functional.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print("loss", loss.item())
        if step % 3 == 2:
            print("said", model.eval().say(words[:2, :5], 8).tolist())
            model.train()
    print(digest(model.state_dict().values()))


def perceptron(width, depth, outputs):
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(width, outputs)).cuda()


def several_models():
    """Models of several sizes one after another: what they leave is given back, and other tensors come to lie there."""
    for seed, width in enumerate((256, 640, 384)):
        torch.manual_seed(seed)
        model = perceptron(width, 5, 10)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for _ in range(6):
            inputs, targets = torch.randn(64, width).cuda(), torch.randint(10, (64,)).cuda()
            loss = functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print("loss", loss.item())
        print(digest(model.state_dict().values()))
        del model, optimizer, inputs, targets, loss
        gc.collect()
        torch.cuda.empty_cache()
        print("left", torch.cuda.memory_allocated() >> 20)


def advantages(rewards, values):
    """By generalised estimation, from the last step to the first."""
    last, all_of_them = torch.zeros_like(rewards[0]), []
    for reward, value, after in zip(reversed(rewards), reversed(values), [last, *reversed(values[1:])]):
        last = reward + 0.99 * after - value + 0.94 * last
        all_of_them.append(last)
    return torch.cat(all_of_them[::-1])


def rollouts():
    """Proximal policy optimisation: games of other lengths in each round, then updates in batches drawn from them."""
    torch.manual_seed(7)
    policy, critic = perceptron(640, 4, 6), perceptron(640, 4, 1)
    optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=3e-4)
    for game in range(3):
        state, seen = torch.randn(8, 640).cuda(), []
        for _ in range(8 + 5 * game):
            with torch.no_grad():
                chances = torch.distributions.Categorical(logits=policy(state))
                action = chances.sample()
                seen.append((state, action, chances.log_prob(action), critic(state)[:, 0], state.mean(1).tanh()))
            state = 0.9 * state + 0.1 * (action.cpu()[:, None] + torch.randn(8, 640)).cuda()
        states, actions, logs, values, rewards = zip(*seen)
        gain = advantages(rewards, values)
        states, actions, logs, goal = torch.cat(states), torch.cat(actions), torch.cat(logs), gain + torch.cat(values)
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        for rows in torch.randperm(len(states), device="cuda").split(48):
            chances = torch.distributions.Categorical(logits=policy(states[rows]))
            ratio = (chances.log_prob(actions[rows]) - logs[rows]).exp()
            bounded = torch.min(ratio * gain[rows], ratio.clamp(0.8, 1.2) * gain[rows]).mean()
            off = functional.mse_loss(critic(states[rows])[:, 0], goal[rows])
            loss = off - bounded - 0.01 * chances.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("loss", loss.item())
    print(digest([*policy.state_dict().values(), *critic.state_dict().values()]))


class Spectral(nn.Module):
    """Products of a few frequencies, as Fourier neural operators have."""

    def __init__(self, channels=32, modes=8):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, channels, modes, modes, dtype=torch.cfloat) * 0.02)
        self.beside = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        modes, frequencies = self.weight.shape[-1], torch.fft.rfft2(x)
        kept = torch.zeros_like(frequencies)
        kept[:, :, :modes, :modes] = torch.einsum("bixy,ioxy->boxy", frequencies[:, :, :modes, :modes], self.weight)
        return functional.gelu(torch.fft.irfft2(kept, s=x.shape[-2:]) + self.beside(x))


def spectral():
    """Complex parameters, Fourier transforms and products of complex matrices."""
    torch.manual_seed(8)
    model = nn.Sequential(nn.Conv2d(1, 32, 1), *[Spectral() for _ in range(4)], nn.Conv2d(32, 1, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(5):
        x = torch.randn(8, 1, 32, 32).cuda()
        loss = functional.mse_loss(model(x), x.roll(1, -1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())
    print(digest([torch.view_as_real(value) if value.is_complex() else value for value in model.state_dict().values()]))


LOOPS = [generating, several_models, rollouts, spectral]
