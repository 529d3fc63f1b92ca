"""The page of `jobgen policy docs`: texts of policies are text, whatever they contain."""

from __future__ import annotations

from jobgen.check.policy.policy_page import PolicyDocument, format_page

HOSTILE = "<img src=x onerror=alert(1)> [x](javascript:alert(1)) | `a < b`"


def make_policy():
    description = f"{HOSTILE}\n# heading\n</td><script>alert(1)</script>"
    return {
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "hostile", "annotations": {"jobgen.dev/description": description}},
        "spec": {
            "matchConstraints": {"resourceRules": [{"resources": ["<b>pods"]}]},
            "validations": [{"expression": "a", "message": HOSTILE}, {"expression": "'`<b>`' == object.x"}],
        },
    }


def make_binding():
    selector = {
        "matchLabels": {"a": "`<b>`"},
        "matchExpressions": [{"key": "`<b>`", "operator": "In", "values": ["<i>"]}],
    }
    spec = {"policyName": "hostile", "matchResources": {"objectSelector": selector}, "paramRef": {"name": "`<b>`"}}
    return {"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "hostile"}, "spec": spec}


def test_texts_of_policies_are_no_markup():
    page = format_page([PolicyDocument("policies/<b>.yaml", make_policy()), PolicyDocument("b", make_binding())])

    outside = [part for line in page.splitlines() for index, part in enumerate(line.split("`")) if index % 2 == 0]
    assert not [part for part in outside if "<" in part.replace("\\<", "") or "](javascript" in part.replace("\\]", "")]
    assert "`a < b`" in page
    assert [line for line in page.splitlines() if line.startswith("#")] == ["# Policies", "## hostile"]


def test_a_message_of_several_validations_is_listed_once():
    policy = make_policy()
    policy["spec"]["validations"] = [{"expression": "a", "message": "add it"}, {"expression": "b", "message": "add it"}]

    assert format_page([PolicyDocument("a", policy)]).count("add it") == 1
