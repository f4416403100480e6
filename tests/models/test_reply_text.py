"""Text that models and servers put around an answer, as observed."""

from __future__ import annotations

import json

import pytest

from rag.models.servers import answer_text, drop_reasoning

ANSWER = "The mill at Orrin was built in 1790 [1]."
THOUGHT = "The user asks about a mill, so I look at passage 2."

THOUGHTS = [
    f"<think>{THOUGHT}</think>{ANSWER}",
    f"[THINK]{THOUGHT}[/THINK]{ANSWER}",
    f"◁think▷{THOUGHT}◁/think▷{ANSWER}",
    f"<seed:think>{THOUGHT}</seed:think>{ANSWER}",
    f"<scratchpad>\n{THOUGHT}\n</scratchpad>\n\n{ANSWER}",
    f"<inner_voice>{THOUGHT}</inner_voice>{ANSWER}",
    f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
    f"analysis{THOUGHT}assistantfinal{ANSWER}",
    f"Thinking...\n{THOUGHT}\n...done thinking.\n\n{ANSWER}",
    f"**Reasoning:** {THOUGHT}\n\n**Final answer:** {ANSWER}",
    f"## Thinking:\n{THOUGHT}\n\n## Answer\n{ANSWER}",
    f'<details type="reasoning" done="true">\n<summary>Thought</summary>\n> {THOUGHT}\n</details>\n{ANSWER}',
    f"<think>{THOUGHT}</think><answer>{ANSWER}</answer>",
]
WRAPPED = [
    f"<answer>{ANSWER}</answer>",
    f"<answer>{ANSWER}",
    f"<result>{ANSWER}</result>",
    f"Answer: {ANSWER}",
    f"**Answer:**\n\n{ANSWER}",
    f"```markdown\n{ANSWER}\n```",
    f"```\n{ANSWER}\n```",
    json.dumps({"answer": ANSWER}),
    json.dumps({"reasoning": THOUGHT * 3, "final_answer": ANSWER, "confidence": 0.9}),
    json.dumps({"answer": ANSWER.replace(" [1]", ""), "citations": [1]}).replace("1790.", "1790 [1]."),
    json.dumps([{"sentence": ANSWER}]),
    f"```json\n{json.dumps({'answer': ANSWER})}\n```",
    *(f"{ANSWER}{token}" for token in ("<|im_end|>", "</s>", "<|eot_id|>", "<end_of_turn>", "<｜end▁of▁sentence｜>")),
    f"{ANSWER}<|im_end|>\n<|im_start|>user\nAnd who owns it?",
    f"{ANSWER}\n\nReferences:\n[1] Orrin mill, https://example.org/orrin",
    f"{ANSWER}\n\n**Sources:**\n- [1] Orrin mill",
    f"{ANSWER}\n\nSources: [1]",
    f"{ANSWER}\n\n[1]: Orrin mill, https://example.org/orrin",
    f"\ufeff{ANSWER}",
]


@pytest.mark.parametrize("reply", THOUGHTS + WRAPPED)
def test_the_answer_is_what_is_left(reply: str) -> None:
    assert " ".join(answer_text(reply).split()) == ANSWER


@pytest.mark.parametrize("reply", THOUGHTS)
def test_no_beginning_of_a_reply_shows_its_thoughts(reply: str) -> None:
    for size in range(len(reply)):
        shown = answer_text(reply[:size], whole=False).strip()
        assert ANSWER.startswith(shown), shown


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>{THOUGHT}",
        f"<|channel|>analysis<|message|>{THOUGHT}",
        '<tool_call>\n{"name": "retrieve", "arguments": {"query": "mill"}}\n</tool_call>',
        '{"name": "retrieve", "parameters": {"query": "mill"}}',
        '[TOOL_CALLS][{"name": "retrieve", "arguments": {"query": "mill"}}]',
        "<|im_end|>",
        '{"answer": ""}',
    ],
)
def test_a_reply_without_an_answer_is_empty(reply: str) -> None:
    assert not answer_text(reply).strip()


@pytest.mark.parametrize(
    "reply",
    [
        "The token `<|im_end|>` ends a turn [1]. Others end with `</s>` [2].",
        "<p>Built in 1790 [1].</p>",
        "```bash\npip install orrin\n```\nThat installs it [1].",
        "```bash\npip install orrin\n```",
        "Analysis of the mill began in 1790 [1].",
        "[1] says that it was built in 1790.",
        "{name} stands for the person [1].",
        "The mill cites these sources:\n\nSources: the deed of 1790, which the town keeps [1].",
        "[The mill] was built in 1790 [1].",
    ],
)
def test_what_only_looks_alike_stays(reply: str) -> None:
    assert answer_text(reply) == reply


def test_a_summary_keeps_its_labels_and_lists() -> None:
    text = "Answer: two mills.\n- one [1]\n- two [2]"
    assert drop_reasoning(text) == text
