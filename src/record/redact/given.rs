//! Secrets and names that nothing marks but the words around them: options of programs,
//! lines of settings, addresses that are shared with friends.

use super::Kind;
use super::issued::classes;
use super::patterns::{Pattern, checked, is_value};

/// The patterns of this subject.
pub(super) fn patterns() -> Vec<Pattern> {
    let token = |regex, holds: fn(&str) -> bool| checked(Kind::Token, regex, holds);
    let user = |regex| checked(Kind::User, regex, is_account);
    vec![
        // an option and its value
        token(
            r#"(?i)(?:^|[\s"'(])--?(?:[a-z0-9]+[_-])*(?:[a-z0-9]*(?:token|passw(?:or)?d|secret|auth|credentials?)|(?:auth|api)?key|passphrase|pwd|ngrok|webhook)(?:=|\s+)(?:"(?P<q>[^"]{3,})"|'(?P<d>[^']{3,})'|(?P<s>[^\s"'-][^\s"']{2,}))"#,
            is_value,
        ),
        // curl, wget, aria2: user and password
        token(
            r#"(?:^|[\s"'(])(?:-u|-U|--user|--proxy-user)(?:=|\s+|["'], *["'])["']?(?P<s>[^\s"':/=]+:[^\s"'/,][^\s"',]*)"#,
            is_pair,
        ),
        // requests, gradio: launch(auth=("u", "p"))
        token(
            r"(?i)\bauth\s*=\s*\[?\(?[\[(](?P<s>[^)\]\r\n]{3,})[)\]]",
            is_value,
        ),
        // a password may be several words: to the end of its line
        token(
            r#"(?i)\b(?:passw(?:or)?d|passphrase|pwd)["']?(?:\s*:\s*|\s+=\s+|\s*=>\s*)(?:"(?P<q>[^"\r\n]{3,})"|'(?P<d>[^'\r\n]{3,})'|(?P<s>[^\s"'/<][^"'\r\n,;&}]{2,}))"#,
            is_value,
        ),
        // rclone's settings: `pass = …`, and `PASS=…`
        token(
            r#"(?i)(?:^|[^a-z0-9])(?:pass2?|pwd)["']?\s*[:=]\s*["']?(?P<s>[^\s"',;&}/<][^\s"',;&}]{5,})"#,
            |s| is_value(s) && (classes(s) >= 2 || s.len() >= 20),
        ),
        token(
            r#"(?i)(?:^|[^a-z0-9_.-])key["']?\s*=\s*["']?(?P<s>[^\s"',;&})]{10,})"#,
            |s| is_value(s) && is_random(s, 10),
        ),
        // words such as `webhook secret is …`
        token(
            r#"(?i)(?:key|token|secret|auth|pass|pwd|bearer|webhook)[a-z0-9_]*["']?(?:\s+[a-z]{1,12}){0,3}[\s:=>"'(,]+(?P<s>[A-Za-z0-9_+/.~-]{24,})"#,
            |s| is_random(s, 16) && classes(s) == 3,
        ),
        token(
            r"(?i)\b(?:wandb|hf|huggingface-cli|ngrok|civitai)\s+(?:auth\s+|config\s+)?(?:login|authtoken|add-authtoken)\s+(?:--[a-z-]+\s+)*(?P<s>[A-Za-z0-9_-]{12,})",
            is_value,
        ),
        // os.environ['HF_TOKEN'] = 'x', setenv("HF_TOKEN", "x"), ('password', 'x')
        token(
            r#"(?i)["'][a-z0-9_.-]*(?:api[_-]?key|access[_-]?key|private[_-]?key|[a-z0-9][_-](?:key|token)|secret|passw(?:or)?d|passphrase|credentials?)[a-z0-9_]*["']\s*(?:\]\s*=|,)\s*b?(?:"(?P<q>[^"\r\n]{3,})"|'(?P<d>[^'\r\n]{3,})')"#,
            is_value,
        ),
        token(
            r#"(?i)\btoken["']?\s*:\s*["']?(?P<s>[^\s"',;&}<]{8,})"#,
            |s| is_value(s) && (classes(s) >= 2 || s.len() >= 12),
        ),
        // programs whose option for a password is one letter
        token(
            r#"\b(?:sshpass|mysql(?:dump|admin)?|mariadb|7z[a-z]?|zip|unzip|rar|unrar|redis-cli|mongosh?|ldapsearch)\b[^\r\n|;]*?\s-[pPaw]\s*["']?(?P<s>[^\s"'-][^\s"']{2,})"#,
            is_value,
        ),
        token(r"\bpass:(?P<s>[^\s/][^\s]{3,})", is_value),
        // what a password became, and one in a code for guests
        token(
            r#"\$(?:1|2[abxy]?|5|6|7|y|apr1|argon2(?:id|i|d)|pbkdf2[a-z0-9-]*|scrypt)\$[^\s:"']{8,}"#,
            |_| true,
        ),
        token(
            r"(?i)\bWIFI:[^\r\n]*?\bP:(?P<s>(?:\\.|[^;\\\r\n])+)",
            |_| true,
        ),
        // whose account it is
        user(
            r#"(?i)\b(?:logged|signed) in (?:to \S{1,40} )?as\b:?\s*["'`]?(?P<s>[A-Za-z0-9][A-Za-z0-9_.-]*)"#,
        ),
        user(
            r#"(?i)\b(?:logged|signed) in as\b:?\s*["'`]?[A-Za-z0-9_.-]+["'`]?\s+\((?P<s>[A-Za-z0-9][A-Za-z0-9_.-]*)\)"#,
        ),
        user(
            r"(?i)^\s*(?:user|orgs?|account|login)(?:[ _]?name)?\s*:\s*(?P<s>[A-Za-z0-9][A-Za-z0-9_.-]*)\s*$",
        ),
        user(
            r#"(?i)\b(?:user[_ ]?name|(?:hub|hf|huggingface|civitai|wandb|github|ngrok)[a-z]*[ _]+(?:user|account|entity))["']?\s*[:=]\s*["']?(?P<s>[A-Za-z0-9][A-Za-z0-9_.-]*)"#,
        ),
        // who knows the address is in: gradio, ngrok, RunPod, Cloudflare and others
        checked(
            Kind::Host,
            r"(?i)(?:^|[^a-z0-9.-])(?P<s>[a-z0-9][a-z0-9.-]*)\.(?:gradio\.live|gradio\.app|ngrok\.io|ngrok\.app|ngrok\.dev|ngrok-free\.app|ngrok-free\.dev|trycloudflare\.com|proxy\.runpod\.net|proxy\.runpod\.io|loca\.lt|lhr\.life|localhost\.run|serveo\.net|pinggy\.link|pinggy\.io|ts\.net|devtunnels\.ms|hf\.space)\b",
            |s| !["www", "api", "docs", "dashboard", "status", "share"].contains(&s),
        ),
    ]
}

/// Options that take `user:password`, and those that take cookies.
pub(super) fn is_login(option: &str, value: &str) -> bool {
    ["-u", "-U", "--user", "--proxy-user"].contains(&option) && is_pair(value)
        || (option == "-b" || option.starts_with("--cookie")) && value.contains('=')
}

fn is_pair(text: &str) -> bool {
    text.split_once(':').is_some_and(|(user, password)| {
        // `docker -u 1000:1000`
        let number = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let whole = !user.is_empty() && !password.is_empty();
        whole && !text.contains("://") && (!number(user) || !number(password))
    })
}

/// Names that stand where an account's would, and are none.
fn is_account(text: &str) -> bool {
    let dull = [
        "system",
        "video",
        "render",
        "time",
        "unknown",
        "anonymous",
        "you",
    ];
    text.len() >= 3
        && is_value(text)
        && text.bytes().any(|b| b.is_ascii_alphabetic())
        && !dull.iter().any(|d| text.eq_ignore_ascii_case(d))
        && !super::own::is_generic(text)
}

/// Whether a text holds a run of `least` letters and digits that nobody would think of.
/// Digests stay, and so do shapes (`128x128x32`), kernels and names of layers.
fn is_random(text: &str, least: usize) -> bool {
    let digest = |s: &str| s.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if text.starts_with(['/', '~', '<']) || digest(text.trim_start_matches("0x")) {
        return false;
    }
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|piece| {
            let mut letters: Vec<u8> = piece.bytes().filter(u8::is_ascii_alphabetic).collect();
            letters.sort_unstable();
            letters.dedup();
            // digits stand anywhere in it, not at its end or in a few numbers
            let pairs = piece.as_bytes().windows(2);
            let changes = pairs.filter(|w| w[0].is_ascii_digit() != w[1].is_ascii_digit());
            piece.len() >= least && !digest(piece) && letters.len() >= 5 && changes.count() >= 3
        })
}

/// Whether a long run of base64 holds a piece that nobody would think of; paths, kernels and
/// names of layers have none.
pub(super) fn is_random_base64(text: &str) -> bool {
    let slashes = text.bytes().filter(|b| *b == b'/').count();
    classes(text) == 3
        && slashes <= 4
        && text
            .split(['+', '/', '_', '-', '='])
            .any(|piece| classes(piece) == 3 && is_random(piece, 10))
}

#[cfg(test)]
mod tests {
    use super::super::patterns::find;

    fn parts(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|(r, _)| &text[r]).collect()
    }

    #[test]
    fn what_stands_behind_its_word_is_found() {
        for (text, secret) in [
            ("curl -u jane:pw https://example.org", "jane:pw"),
            ("--basicauth jane:pw", "jane:pw"),
            ("app.launch(auth=('jane', 'pw12'))", "'jane', 'pw12'"),
            ("launch.py --ngrok 2abcDEF_3xyz --port 1", "2abcDEF_3xyz"),
            ("tailscale up --authkey=abc123", "abc123"),
            ("--password \"correct horse\" -x", "correct horse"),
            ("password: correct horse battery", "correct horse battery"),
            ("pass = Vn0kV5a8Zz-QmX_31", "Vn0kV5a8Zz-QmX_31"),
            ("GET key=a8Zk31Qm9x", "a8Zk31Qm9x"),
            (
                "the webhook secret is a8Zk31Qm9xVn0kV5a8ZzQmX31",
                "a8Zk31Qm9xVn0kV5a8ZzQmX31",
            ),
            (
                "wandb login 0123456789abcdef0123456789abcdef01234567",
                "0123456789abcdef0123456789abcdef01234567",
            ),
            ("os.environ['HF_TOKEN'] = 'pl4nted'", "pl4nted"),
            ("setenv(\"DB_PASSWORD\", \"pl4nted\")", "pl4nted"),
            ("mysqldump -u root -ppl4nted films", "pl4nted"),
            ("openssl enc -pass pass:pl4nted", "pl4nted"),
            ("x:$6$salt$pl4ntedpl4nted:19000", "$6$salt$pl4ntedpl4nted"),
            ("WIFI:S:home;T:WPA;P:pl4nted;;", "pl4nted"),
            ("token: pl4nted-1", "pl4nted-1"),
            ("Logged in as jane_doe", "jane_doe"),
            (
                "wandb: Currently logged in as: jane_doe (team-doe).",
                "team-doe",
            ),
            ("user:  jane_doe", "jane_doe"),
            (
                "Running on public URL: https://0a1b2c3d4e5f.gradio.live",
                "0a1b2c3d4e5f",
            ),
            ("https://abc-12.ngrok-free.app/x", "abc-12"),
            ("https://k3x9-7860.proxy.runpod.net", "k3x9-7860"),
            ("https://two-red-words.trycloudflare.com", "two-red-words"),
        ] {
            assert!(parts(text).contains(&secret), "{text}: {:?}", parts(text));
        }
    }

    #[test]
    fn near_misses_stay() {
        for text in [
            "key=0 key=value key=lambda sort(key=str.lower)",
            "key=model.diffusion_model.input_blocks.1.0.in_layers.0.weight",
            // long hexadecimal digits stay only where a word says that they are a digest
            "sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "Key: 4-16-16-3x3-4-16-16-1-1x1-1x1-1x1-0-NCHW-FP16-F",
            "MIOpen(HIP): Info [GetPerfDbRecord] key=256-64-64-3x3-256-64-64-1-1x1-1x1-1x1-0-NCHW-FP16-F",
            "MIOpen(HIP): Warning [FindSolution] auth ConvHipImplicitGemmGroupFwdXdlops2",
            "kernel key Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SE_1LDSB0_APM1",
            "python -u generate.py --user jane -u 1000:1000",
            "pass 2/3, pass: forward, pass = 12",
            "PWD=/data/app pwd: /data",
            "password: required",
            "token: transformer",
            "zip -r out.zip films; mysql -P 3306",
            "token merging 0.5 tokens: 4096 at 0x7f3c12a40000",
            "user: 12.5s system: 3.1s",
            "Logged in as root",
            "www.ngrok.app docs.gradio.app",
            "commit c5239407cccf7156ea886aa0c55ad015a3bf4f1b as key",
            "amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32774)",
            "auth torch-2.4.1+rocm6.1-cp312-cp312-linux_x86_64.whl",
        ] {
            assert_eq!(parts(text), Vec::<&str>::new(), "{text}");
        }
    }
}
