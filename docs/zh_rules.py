"""The page of all rules in Chinese, from docs/zh/rules.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml
from build_rules import CATEGORIES

from jobgen.check.rule_docs import RuleDoc, all_docs

SUMMARIES = Path(__file__).parent / "zh/rules.yaml"
INTRO = """\
<!-- Written by docs/build_zh.py from docs/zh/rules.yaml: run `make docs`. -->

# 规则

SOURCE

`jobgen lint` 报告的每个问题都带有规则名。下面是所有规则的一句话说明。\
点击规则名可以看到英文的详细说明和正反示例；\
`jobgen explain RULE` 在终端里打印同样的内容。

- **error**：提交后一定会失败，或者会丢失训练成果。只有 error 会让 `jobgen lint` 以 1 退出。
- **warning**：有风险。
- **info**：建议。

仓库可以在 `jobgen.yaml` 中修改规则的级别，或者关闭规则，见 [lint.md](../lint.md#settings)。
"""


def build_rules_page() -> tuple[str, str, list[str]]:
    """Return the page, the English sentences, and what is missing or out of date in the table of summaries."""
    table = yaml.load(SUMMARIES.read_text("utf-8"), yaml.CSafeLoader)
    # Known defects have a page of their own.
    docs = {name: doc for name, doc in all_docs(None).items() if doc.category in CATEGORIES}
    summaries = {name: doc.summary for name, doc in sorted(docs.items())}
    problems = [*find_outdated("categories", table["categories"], CATEGORIES)]
    problems += find_outdated("rules", table["rules"], summaries)
    parts = [INTRO]
    for category in CATEGORIES:
        rules = sorted(doc for doc in docs.values() if doc.category == category and doc.name in table["rules"])
        if rules and category in table["categories"]:
            parts.append(f"## {category}\n\n{table['categories'][category]['zh']}\n")
            parts.append("| 规则 | 级别 | 说明 |\n|---|---|---|\n" + "".join(_format_rows(rules, table["rules"])))
    return "\n".join(parts), "\n".join((*CATEGORIES.values(), *summaries.values())), problems


def find_outdated(part: str, table: dict[str, dict[str, str]], english: dict[str, str]) -> Iterator[str]:
    """Say which sentences have no translation, which translations no sentence, and which sentences have changed."""
    for name in sorted(table.keys() | english.keys()):
        if name not in table:
            yield f"add `{name}` to {part} of docs/zh/rules.yaml: en: {english[name]}"
        elif name not in english:
            yield f"remove `{name}` from {part} of docs/zh/rules.yaml: there is no such rule or category"
        elif table[name]["en"] != english[name]:
            yield f"translate `{name}` of {part} in docs/zh/rules.yaml again, and set en: {english[name]}"


def _format_rows(rules: list[RuleDoc], table: dict[str, dict[str, str]]) -> Iterator[str]:
    for doc in rules:
        summary = table[doc.name]["zh"].replace("|", "\\|")
        yield f"| [{doc.name}](../rules/{doc.name}.md) | {doc.severity.value} | {summary} |\n"
