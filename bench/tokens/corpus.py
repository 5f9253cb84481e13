import subprocess, os, random, json, base64, uuid, glob

random.seed(7)
import argparse

parser = argparse.ArgumentParser()
for name in ["guide", "django", "write"]:
    parser.add_argument("--" + name, required=True)
options = parser.parse_args()
out = options.write
os.makedirs(out, exist_ok=True)
git = ["git", "-C", options.guide]
names = subprocess.run(
    git + ["ls-tree", "-r", "--name-only", "HEAD", "_articles/"], capture_output=True, text=True
).stdout.split()
n = 0


def put(kind, text, size=3000, most=14):
    global n
    parts = [text[i : i + size] for i in range(0, len(text), size)]
    parts = [p for p in parts if len(p) > min(size, len(text)) * 0.6]
    random.shuffle(parts)
    for p in parts[:most]:
        open(f"{out}/{kind}~{n}", "w").write(p)
        n += 1


bylang = {}
for name in names:
    bits = name.split("/")
    lang = bits[1] if len(bits) == 3 else "en"
    t = subprocess.run(git + ["show", "HEAD:" + name], capture_output=True).stdout.decode()
    bylang.setdefault(lang, []).append(t)
for lang, ts in bylang.items():
    import re

    t = "\n".join(ts)
    # Prose without links and tags.
    t = re.sub(r"\]\([^)]*\)", "]", t)
    t = re.sub(r"<[^>]*>", "", t)
    put("prose-" + lang, t, 1500, 24)
root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..") + "/"


def files(pat):
    return sorted(glob.glob(root + pat, recursive=True))


rs = [open(f).read() for f in files("crates/*/src/**/*.rs")]
random.shuffle(rs)
put("code-rust", "\n".join(rs[:60]), 3000, 40)
import sysconfig

std = sysconfig.get_paths()["stdlib"]
py = [open(f, errors="replace").read() for f in sorted(glob.glob(std + "/*.py"))]
random.shuffle(py)
put("code-python", "\n".join(py[:50]), 3000, 40)
sh = [open(f).read() for f in files("scripts/*") if os.path.isfile(f)]
put("code-sh", "\n".join(sh), 3000, 14)
js = [f for f in glob.glob(root + ".sdk/**/node_modules/**/*.js", recursive=True)][:4000]
random.shuffle(js)
put("code-js", "\n".join(open(f, errors="replace").read() for f in js[:60]), 3000, 40)
ht = [f for f in glob.glob(std + "/**/*.html", recursive=True)]
put("markdown", "\n".join(open(f).read() for f in files("docs/**/*.md")), 3000, 24)
models = open(root + "crates/endmark-context/data/models.json").read()
put("json-models", models, 3000, 14)


def obj(i):
    return {
        "id": i,
        "name": random.choice(["harbour", "basin", "crane", "pilot", "dock", "buoy"])
        + "-"
        + str(random.randint(1, 999)),
        "price": round(random.random() * 1000, 2),
        "active": random.random() < 0.5,
        "createdAt": "2026-%02d-%02dT%02d:%02d:%02dZ"
        % (
            random.randint(1, 12),
            random.randint(1, 28),
            random.randint(0, 23),
            random.randint(0, 59),
            random.randint(0, 59),
        ),
        "tags": random.sample(["red", "urgent", "north", "archived", "draft", "import"], 2),
        "address": {
            "street": "%d Mill Lane" % random.randint(1, 200),
            "zip": "%05d" % random.randint(0, 99999),
            "country": random.choice(["DE", "US", "FR"]),
        },
        "note": None,
    }


put("json-compact", json.dumps([obj(i) for i in range(400)], separators=(",", ":")), 2500, 14)
put("json-plain", json.dumps([obj(i) for i in range(400)]), 2500, 14)
put("json-pretty", json.dumps([obj(i) for i in range(300)], indent=2), 2500, 14)
put("digits-spaced", " ".join(str(random.randint(0, 10 ** random.randint(1, 9))) for _ in range(5000)), 2000, 10)
put(
    "digits-csv",
    "\n".join(
        ",".join("%.*f" % (random.randint(0, 5), random.random() * 10 ** random.randint(0, 5)) for _ in range(8))
        for _ in range(600)
    ),
    2000,
    14,
)
put("digits-array", json.dumps([random.random() for _ in range(2000)]), 2000, 8)
put("digits-run", "".join(str(random.randint(0, 9)) for _ in range(9000)), 2000, 4)
put("hex", "\n".join("%064x" % random.getrandbits(256) for _ in range(300)), 2000, 8)
put("uuid", "\n".join(str(uuid.UUID(int=random.getrandbits(128))) for _ in range(300)), 2000, 8)
put("base64", base64.b64encode(random.randbytes(9000)).decode(), 2000, 5)
put(
    "log",
    "\n".join(
        "2026-11-%02dT%02d:%02d:%02d.%03dZ %s [worker-%d] request_id=%08x path=/api/v1/%s/%d status=%d took=%dms"
        % (
            random.randint(1, 28),
            random.randint(0, 23),
            random.randint(0, 59),
            random.randint(0, 59),
            random.randint(0, 999),
            random.choice(["INFO", "WARN", "ERROR", "DEBUG"]),
            random.randint(1, 32),
            random.getrandbits(32),
            random.choice(["users", "orders", "items"]),
            random.randint(1, 99999),
            random.choice([200, 201, 404, 500]),
            random.randint(1, 3000),
        )
        for _ in range(400)
    ),
    2500,
    14,
)
put(
    "csv",
    "\n".join(
        ",".join(
            [
                str(i),
                random.choice(["North", "South", "East"]),
                random.choice(["Anna Berg", "John Miller", "Li Wei", "Sara Costa"]),
                "%d" % random.randint(1, 100000),
                "%.2f" % (random.random() * 1000),
            ]
        )
        for i in range(600)
    ),
    2500,
    10,
)
put(
    "table",
    "\n".join(
        "| %d | %s | %.2f | %s |"
        % (
            i,
            random.choice(["open", "closed", "in review"]),
            random.random() * 99,
            random.choice(["alpha", "beta", "gamma"]),
        )
        for i in range(400)
    ),
    2500,
    8,
)
put(
    "caps",
    (
        "ERROR: CONNECTION REFUSED BY UPSTREAM. CHECK THE ADDRESS AND TRY AGAIN. " * 3
        + "WARNING: DISK SPACE LOW ON VOLUME DATA. "
    )
    * 12,
    2000,
    3,
)
put(
    "emoji",
    "🚀 Launch the new release today! ✅ Tests pass, 🎉 docs are written, 🔥 hot fix merged. 👍 Thanks to all — see you… "
    * 20,
    2000,
    2,
)
print(n)
import re, ast

for lang in ["he", "th", "ka", "hy", "km", "te", "kn", "my", "ne", "mr", "am"]:
    t = ""
    for f in glob.glob(options.django + "/django/**/locale/%s/LC_MESSAGES/*.po" % lang, recursive=True):
        s = open(f).read()
        for m in re.finditer(r'^msgstr(?:\[\d\])? ((?:"[^\n]*"\n?)+)', s, re.M):
            try:
                v = "".join(ast.literal_eval(x) for x in m.group(1).strip().split("\n"))
            except Exception:
                continue
            v = re.sub(r"%\(\w+\)[sd]|%[sd]|\{\w*\}|<[^>]+>", "", v)
            if len(v) > 12 and "Content-Type" not in v:
                t += v.strip() + "\n"
    put("po-" + lang, t, 1200, 10)
print(n)
