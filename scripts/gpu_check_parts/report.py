# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The libswap authors
"""One JSON for programs, one table for people."""
import json
import time


def record(card, host, steps, seconds, quick):
    return {"format": "libswap-gpu-check/1", "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "quick": quick,
            "seconds": round(seconds, 1), "device": card, "host": host, "steps": steps}


def write(folder, whole):
    (folder / "gpu_check.json").write_text(json.dumps(whole, indent=1) + "\n")
    (folder / "gpu_check.md").write_text(table(whole))


def of_answer(found):
    return found["answer"]


def of_launches(found):
    return "; ".join(f"{row['host_us']:.2f} us {name}" for name, row in found.items())


def of_bench(found):
    profile = found["profile"]
    return (f"{profile['h2d_gbps']:.1f} GB/s in, {profile['d2h_gbps']:.1f} out; both at once {profile['h2d_duplex_gbps']:.1f} and "
            f"{profile['d2h_duplex_gbps']:.1f}; memory {profile['mem_gbps']:.0f} GB/s; {len(found['not_measured'])} not measured")


def of_cases(found):
    return f"{sum(result == 'completed' for result in found.values())} of {len(found)} tests pass"


def of_training(found):
    parts = []
    for name, row in found.items():
        if not isinstance(row, dict):
            continue
        time_ms = row.get("iteration_ms") or row.get("step_ms")
        part = f"{name}: {time_ms:.2f} ms" if time_ms else name
        if "slowdown" in row:
            part += f" ({row['slowdown']:.2f} times)"
        elif row.get("peak_bytes"):
            part += f" with {row['peak_bytes'] / 2**20:,.0f} MiB"
        parts.append(part)
    return "; ".join(parts)


def in_short(step):
    found = step["found"]
    if not found:
        return ""
    if "answer" in found:
        return of_answer(found)
    if step["step"] == "conformance":
        return "; ".join(found["cases"])
    for name, how in (("launches", of_launches), ("bench", of_bench), ("cases", of_cases), ("t", of_training)):
        if name in step["step"]:
            return how(found)
    return ""


def facts(found):
    """Rows of an answer: what was asked, what came."""
    rows = [(name, value) for name, value in found["facts"].items()]
    for part in found["tables"]:
        for row in part["rows"]:
            rows.append((row["name"], f"{row['median']:.3f} {part['unit']} (least {row['minimum']:.3f})"))
    return rows


def table(whole):
    card, host = whole["device"], whole["host"]
    lines = [f"# {card['name']}", "",
             f"scripts/gpu_check, {whole['when']}, {whole['seconds']:.0f} s{', small sizes' if whole['quick'] else ''}. "
             f"CUDA driver {card['driver_version'] // 1000}.{card['driver_version'] % 1000 // 10}, "
             f"{card['memory_bytes'] / 2**30:.1f} GiB; {host['processors']} x {host['processor']}.", "",
             "| Step | Outcome | Seconds | In short |", "|---|---|---|---|"]
    for step in whole["steps"]:
        # What failed says why; a table's cell has one line.
        said = in_short(step) or step.get("why", "")
        if step["status"] == "failed":
            said = step["why"]
        said = " ".join(said.split()).replace("|", "/")[:400]
        lines.append(f"| {step['step']} | {step['status']} | {step['seconds']:.1f} | {said} |")
    for step in whole["steps"]:
        if step["found"] and "facts" in step["found"]:
            lines += ["", f"## {step['found']['question']}", "", "| What | Answer |", "|---|---|"]
            lines += [f"| {name} | {value} |" for name, value in facts(step["found"])]
    return "\n".join(lines) + "\n"
