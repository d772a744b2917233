"""What the shipped specs can be used with: small values, and the names of their params, axes and runs, which
are read from their text."""

import re

# Small sizes that everything divides; a spec takes those of its params and axes.
SMALL = dict(batch=16, seq=32, src=32, tgt=16, layers=4, enc_layers=3, dec_layers=3, dense_layers=1, mtp=1,
             hidden=64, heads=8,
             kv_heads=4, head_dim=8, ffn=96, vocab=128, positions=64, micro=2, experts=8, topk=2,
             expert_ffn=32, shared=1,
             groups=4, top_groups=2, q_rank=24, kv_rank=16, nope=8, rope_dim=8, v_dim=8, window=8, buckets=8,
             context=16, rotary_dim=4, norms=2, moe_every=2, head_norms=1, image=96, latent=128, patch=32,
             channels=4, classes=16, kinds=16, pattern='"M*-M"', attention_dim=8, segments=2, mels=8, waves=8,
             blocks1=2, blocks2=1, blocks3=3, blocks4=2, width=16,
             text_hidden=32, text_heads=4, text_head_dim=8, text_ffn=48, text_layers=2, rank=4, alpha=8,
             teacher_layers=2, teacher_hidden=32, teacher_heads=8, teacher_kv_heads=4, teacher_head_dim=4,
             teacher_ffn=48,
             image_layers=2, image_hidden=32, image_heads=4, image_head_dim=8, image_ffn=48,
             narrow=16, new=8, gen=4, inner=128, m_heads=8, m_state=16, state=16, m_groups=4, conv=4,
             chunk=8,
             dp=2, tp=2, pp=2, cp=2, ep=2, edp=1, etp=1, rep=2, part=2)


def has_model(spec):
    """Whether a spec or what it imports holds a model: libraries of modules and plans do not."""
    text = spec.read_text(encoding="utf-8")
    return bool(re.search(r"^model ", text, re.M)) or any(
        has_model(spec.parent / name) for name in re.findall(r'^import "([^"]+)"', text, re.M))


def specs_of(folder):
    return [path for path in sorted(folder.glob("*.etch")) if has_model(path)]


def params_of(spec, seen=None):
    """Names of params of a spec and of what it imports."""
    text = re.sub(r"#.*", "", spec.read_text(encoding="utf-8"))
    found = set()
    for line in re.findall(r"^param (.*)$", text, re.M):
        found |= set(re.findall(r"(?:^|,)\s*([a-z_]\w*)", line))
    for name in re.findall(r'^import "([^"]+)"', text, re.M):
        found |= params_of(spec.parent / name)
    return found


def axes_of(spec, plan):
    """Names in the mesh of a plan."""
    text = re.sub(r"#.*", "", spec.read_text(encoding="utf-8"))
    body = re.search(rf"^parallel\s+{plan}\s*\{{(.*?)^\}}", text, re.M | re.S)
    if body:
        mesh = re.search(r"mesh\s*\[(.*?)\]", body[1], re.S)[1]
        computed = set(re.findall(r"([a-z_]\w*)\s*=", mesh))
        return set(re.findall(r"[a-z_]\w*", mesh)) - computed
    for name in re.findall(r'^import "([^"]+)"', text, re.M):
        found = axes_of(spec.parent / name, plan)
        if found:
            return found
    return set()


def runs_of(spec):
    """Names of the runs of one step that must be named; None: there is one that is taken."""
    text = spec.read_text(encoding="utf-8")
    infer = re.findall(r"^infer\s+(\w+)\s*\{(.*)\}", text, re.M)
    served = [name for name, options in infer if "steps" not in options]
    return [None] + served if re.search(r"^train\b", text, re.M) or not infer else served
