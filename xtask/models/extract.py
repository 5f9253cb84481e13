"""Writes the table of models from two packages: prices from genai-prices, limits and capabilities from litellm.

`cargo xtask models` runs it in an environment that contains genai-prices, with the table of litellm next to it.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

from genai_prices import types
from genai_prices.data import providers

# The providers whose models are in the table, in the order in which a name without a provider is looked up. Companies
# that serve their own models come before those that serve models of others, so `llama-…` has a price only with its
# provider's name.
PROVIDERS = {
    "openai": "openai", "anthropic": "anthropic", "google": "gemini", "deepseek": "deepseek", "mistral": "mistral",
    "x-ai": "xai", "moonshotai": "moonshot", "zai": "zai", "minimax": "minimax", "cohere": "cohere", "groq": "groq",
    "cerebras": "cerebras", "perplexity": "perplexity",
}  # fmt: skip

# The names of rates in genai-prices and in the table. A model with any other rate is omitted, because its price would
# be wrong.
RATES = {
    "input_mtok": "input", "output_mtok": "output", "cache_read_mtok": "cached", "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h", "input_audio_mtok": "input_audio", "cache_audio_read_mtok": "cached_audio",
    "output_audio_mtok": "output_audio", "output_reasoning_mtok": "reasoning", "web_searches_kcount": "web_search",
}  # fmt: skip
# Billed by the use of a tool, which no reply reports.
UNREPORTED = {"storage_searches_kcount"}

NANO = Decimal(1_000_000_000)


class Unpriceable(Exception):
    """A model that is billed by a rate for which the table has no name."""


def nano(price: Decimal) -> int:
    """Converts dollars per million tokens (or per thousand searches) to integer nano-dollars."""
    value = price * NANO
    if value != value.to_integral_value():
        raise ValueError(f"{price} is no whole number of nano-dollars")
    return int(value)


def rates(price: types.ModelPrice) -> dict:
    base, above, start = {}, {}, None
    for field, value in vars(price).items():
        if value is None or field in UNREPORTED:
            continue
        if field not in RATES:
            raise Unpriceable(field)
        if isinstance(value, Decimal):
            base[RATES[field]] = nano(value)
            continue
        (tier,) = value.tiers
        if start not in (None, tier.start):
            raise ValueError("tiers that start at different counts")
        start = tier.start
        base[RATES[field]] = nano(value.base)
        above[RATES[field]] = nano(tier.price)
    return {**base, **({"above": {"prompt_tokens": start, **above}} if above else {})}


def when(constraint) -> dict:
    if constraint is None:
        return {}
    if isinstance(constraint, types.StartDateConstraint):
        return {"from": constraint.start_date.isoformat()}
    return {"hours": [constraint.start_time.strftime("%H:%M"), constraint.end_time.strftime("%H:%M")]}


def schedule(prices) -> list[dict]:
    """Returns prices in an order in which a later price that applies replaces an earlier one."""
    listed = prices if isinstance(prices, list) else [types.ConditionalPrice(constraint=None, prices=prices)]
    return [{**when(one.constraint), **rates(one.prices)} for one in listed]


def variants(model: types.ModelInfo) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for variant in model.price_variants or []:
        ((kind, name),) = variant.when.items()
        if kind not in ("processing", "service_tier", "speed") or name == "default":
            continue
        found.setdefault(name, []).append({**when(variant.constraint), **rates(variant.prices)})
    for listed in found.values():
        listed.sort(key=lambda one: one.get("from", ""))
    return found


def names(clause) -> tuple[set[str], set[str]]:
    """Returns the names of a model and the prefixes of its names. The lookup handles dates at the end of a name."""
    if isinstance(clause, types.ClauseEquals):
        return {clause.equals.lower()}, set()
    if isinstance(clause, types.ClauseStartsWith):
        return set(), {clause.starts_with.lower()}
    if isinstance(clause, types.ClauseContains):
        return set(), {clause.contains.lower()}
    exact, begins = set(), set()
    for inner in getattr(clause, "or_", None) or getattr(clause, "and_", None) or []:
        found = names(inner)
        exact |= found[0]
        begins |= found[1]
    return exact, begins


def limits(table: dict, provider: str, model: str) -> dict:
    entry = table.get(model) if table.get(model, {}).get("litellm_provider") == provider else None
    entry = entry or table.get(f"{provider}/{model}") or {}
    taken = {
        "max_input_tokens": entry.get("max_input_tokens"), "max_output_tokens": entry.get("max_output_tokens"),
        "prefill": entry.get("supports_assistant_prefill"), "cache_minimum_tokens": entry.get("prompt_cache_min_tokens"),
        "retires": entry.get("deprecation_date"),
    }  # fmt: skip
    # One entry has a limit that is a text.
    return {key: value for key, value in taken.items() if value is not None and not (key.endswith("tokens") and type(value) is not int)}


def row(provider: str, model: types.ModelInfo, table: dict) -> dict:
    exact, begins = names(model.match)
    found = {"id": model.id.lower(), "provider": provider, "names": sorted(exact - {model.id.lower()}), "begins": sorted(begins)}
    window = {"context_tokens": model.context_window} if model.context_window else {}
    prices = schedule(model.prices)
    if not all("input" in one and "output" in one for one in prices):
        raise Unpriceable("no price of input or output")
    priced = {"prices": prices}
    named = variants(model)
    return {**found, **window, **limits(table, PROVIDERS[provider], model.id), **priced, **({"variants": named} if named else {})}


def main() -> None:
    table_file, litellm_version, target = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    table = json.loads(table_file.read_text())
    by_id = {provider.id: provider for provider in providers}
    rows, left_out = [], 0
    for provider in PROVIDERS:
        for model in by_id[provider].models:
            # Google charges other prices for models of other companies, which have other names there.
            if provider == "google" and not model.id.startswith(("gemini", "gemma")):
                continue
            try:
                rows.append(row(provider, model, table))
            except Unpriceable:
                left_out += 1
    header = {
        "as_of": datetime.now(timezone.utc).date().isoformat(),
        "unit": "nano-dollars per million tokens; web_search: per thousand searches",
        "sources": [
            {"name": "genai-prices", "version": version("genai-prices"), "licence": "MIT", "of": "prices, context_tokens"},
            {"name": "litellm", "version": litellm_version, "licence": "MIT", "of": "limits, prefill, cache_minimum_tokens, retires"},
        ],
    }
    head = json.dumps(header, indent=1)[:-2]
    # Write one model per line, so that changes can be reviewed.
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in rows)
    target.write_text(f'{head},\n "models": [\n{lines}\n]}}\n')
    print(f"{len(rows)} models; {left_out} that are not billed by tokens alone are left out")


if __name__ == "__main__":
    main()
