//! Secrets that are known by how they begin: whoever issues them says so.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// What a secret is made of behind its beginning, besides ASCII letters and digits.
type Signs = &'static [u8];

const LETTERS: Signs = b"";
const DASHED: Signs = b"-_";
const DOTTED: Signs = b"-_.";
const PATH: Signs = b"-_/";
const PAIR: Signs = b"-_:";

/// One form of a secret.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) begin: &'static str,
    pub(super) signs: Signs,
    /// Bytes behind the beginning, at least.
    pub(super) least: usize,
    /// The beginning is an address that says where it belongs, and stays.
    pub(super) stays: bool,
}

const fn token(begin: &'static str, signs: Signs, least: usize) -> Issued {
    Issued {
        begin,
        signs,
        least,
        stays: false,
    }
}

const fn address(begin: &'static str, signs: Signs, least: usize) -> Issued {
    Issued {
        begin,
        signs,
        least,
        stays: true,
    }
}

/// Every known form. Lengths are below the real ones: a cut one is still one.
pub(super) const ISSUED: &[Issued] = &[
    // Hugging Face user and organisation tokens: huggingface.co/docs/hub/security-tokens
    token("hf_", LETTERS, 8),
    token("api_org_", LETTERS, 12),
    // OpenAI, Anthropic (sk-ant-), OpenRouter (sk-or-): their API references
    token("sk-", DASHED, 12),
    // Stripe: docs.stripe.com/keys
    token("sk_live_", LETTERS, 12),
    token("rk_live_", LETTERS, 12),
    // GitHub: docs.github.com, "About authentication to GitHub", token formats
    token("ghp_", LETTERS, 12),
    token("gho_", LETTERS, 12),
    token("ghu_", LETTERS, 12),
    token("ghs_", LETTERS, 12),
    token("ghr_", LETTERS, 12),
    token("github_pat_", DASHED, 16),
    // GitLab: docs.gitlab.com/security/tokens, token prefixes
    token("glpat-", DOTTED, 12),
    // Slack tokens: api.slack.com/concepts/token-types
    token("xoxa-", DASHED, 8),
    token("xoxb-", DASHED, 8),
    token("xoxc-", DASHED, 8),
    token("xoxd-", DASHED, 8),
    token("xoxe-", DASHED, 8),
    token("xoxe.", DOTTED, 8),
    token("xoxo-", DASHED, 8),
    token("xoxp-", DASHED, 8),
    token("xoxr-", DASHED, 8),
    token("xoxs-", DASHED, 8),
    token("xapp-", DASHED, 8),
    // Slack webhooks: docs.slack.dev, "Sending messages using incoming webhooks"
    address("hooks.slack.com/", PATH, 10),
    // Discord webhooks: discord.com/developers/docs/resources/webhook
    address("/api/webhooks/", PATH, 10),
    // Telegram bots: core.telegram.org/bots/api, "Making requests"
    address("/bot", PAIR, 16),
    // ntfy: docs.ntfy.sh/publish, "topics … choose something that's not easily guessable"
    address("ntfy.sh/", DASHED, 4),
    // AWS: docs.aws.amazon.com/IAM, "unique ID prefixes"
    token("AKIA", LETTERS, 12),
    token("ASIA", LETTERS, 12),
    token("ABIA", LETTERS, 12),
    token("ACCA", LETTERS, 12),
    // Google: API keys, OAuth access tokens, client secrets (cloud.google.com/docs/authentication)
    token("AIza", DASHED, 20),
    token("ya29.", DOTTED, 8),
    token("GOCSPX-", DASHED, 12),
    // Replicate: replicate.com/docs/reference/http, "Authentication"
    token("r8_", LETTERS, 16),
    // NVIDIA: docs.api.nvidia.com, keys of build.nvidia.com
    token("nvapi-", DASHED, 12),
    // RunPod: docs.runpod.io/get-started/api-keys
    token("rpa_", LETTERS, 12),
    // Tailscale: tailscale.com/kb/1277/key-prefixes
    token("tskey-", DASHED, 10),
    // DigitalOcean: docs.digitalocean.com, "personal access tokens"
    token("dop_v1_", LETTERS, 16),
    // Docker Hub: docs.docker.com/security/access-tokens
    token("dckr_pat_", DASHED, 12),
    // Groq, xAI, Perplexity, Fireworks, Together: their API references
    token("gsk_", LETTERS, 16),
    token("xai-", DASHED, 20),
    token("pplx-", DASHED, 16),
    token("fw_", LETTERS, 20),
    token("tgp_v1_", DASHED, 12),
    // Weights & Biases: docs.wandb.ai, "API keys"
    token("wandb_v1_", DASHED, 12),
    // SendGrid: www.twilio.com/docs/sendgrid, "API keys"
    token("SG.", DOTTED, 20),
    // npm and PyPI: docs.npmjs.com "about access tokens", pypi.org/help/#apitoken
    token("npm_", LETTERS, 20),
    token("pypi-", DASHED, 16),
    // a bot's token behind its number: core.telegram.org/bots/api, "Authorizing your bot"
    token(":AA", DASHED, 20),
    // age: github.com/FiloSottile/age
    token("AGE-SECRET-KEY-1", LETTERS, 20),
];

static BEGINNINGS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(ISSUED.iter().map(|i| i.begin)).ok());

/// Every issued secret in `text`.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let Some(search) = &*BEGINNINGS else {
        return Vec::new();
    };
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    // what no secret begins with early in a run, none begins with later in it: a run is
    // read at most twice for each form, however often a form begins within it
    let mut done = vec![(0, 0); ISSUED.len()];
    for begin in search.find_overlapping_iter(text) {
        let form = &ISSUED[begin.pattern().as_usize()];
        let (free_until, until) = &mut done[begin.pattern().as_usize()];
        let free = begin.start() == 0 || !bytes[begin.start() - 1].is_ascii_alphanumeric();
        if begin.end() <= *free_until || !free && begin.end() <= *until {
            continue;
        }
        let belongs = |b: &&u8| b.is_ascii_alphanumeric() || form.signs.contains(b);
        let length = bytes[begin.end()..].iter().take_while(belongs).count();
        let end = begin.end() + length;
        let is_one = length >= form.least && holds(form, &text[begin.end()..end], free);
        *(if is_one || free { free_until } else { until }) = end;
        if is_one {
            let start = if form.stays {
                begin.end()
            } else {
                begin.start()
            };
            found.push(start..end);
        }
    }
    found
}

/// `hf_transfer` is a package, and a `mask-` ends as a key begins.
fn holds(form: &Issued, body: &str, free: bool) -> bool {
    if form.signs == PAIR {
        return body.split_once(':').is_some_and(|(id, key)| {
            id.len() >= 5 && id.bytes().all(|b| b.is_ascii_digit()) && key.len() >= 10
        });
    }
    if form.stays {
        return true;
    }
    let pieces = body.split(['-', '_', '.']);
    let longest = pieces.map(str::len).max().unwrap_or_default();
    let capital = form.begin.bytes().all(|b| b.is_ascii_uppercase());
    if free {
        capital || classes(body) >= 2 || longest >= 20
    } else {
        classes(body) == 3 && longest >= 12
            || capital && form.begin.len() + longest >= 20 && classes(body) == 2
    }
}

/// How many of small letters, capitals and digits there are in `text`.
pub(super) fn classes(text: &str) -> usize {
    let has = |of: fn(&u8) -> bool| usize::from(text.as_bytes().iter().any(of));
    has(u8::is_ascii_lowercase) + has(u8::is_ascii_uppercase) + has(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|part| &text[part]).collect()
    }

    #[test]
    fn each_form_is_found_and_its_address_stays() {
        for form in ISSUED {
            let body = if form.signs == PAIR {
                "123456789:AAbCdEfGhIjKl0123456789"
            } else {
                "AAbCdEfGhIjKl0123456789"
            };
            let secret = format!("{}{body}", form.begin);
            let line = format!("x {secret} y");
            let want = if form.stays { body } else { secret.as_str() };
            assert!(parts(&line).contains(&want), "{line}: {:?}", parts(&line));
        }
    }

    #[test]
    fn words_that_begin_alike_stay() {
        for text in [
            "pip install hf_transfer",
            "HF_HUB_ENABLE_HF_TRANSFER=1 hf_hub_download",
            "/dev/disk-by-partition-label",
            "mask-generation-model-v2",
            "miopenSolver task-0123456789abcdef",
            "npm_config_cache",
            "rpa_",
            "https://example.org/bottles/of/milk",
            "SG.fwd",
            "xai-org",
        ] {
            assert_eq!(parts(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn a_form_that_begins_within_itself_is_one() {
        let text = "sk-".repeat(20_000) + "A1b2C3d4E5f6";
        assert_eq!(find(&text), std::slice::from_ref(&(0..text.len())));
    }
}
