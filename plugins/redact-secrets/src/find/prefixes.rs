//! Credentials that are known by how they begin.
use super::Found;
use super::random::{is_stand_in, looks_random};
use crate::config::Config;

/// What the rest of a credential is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Letters and digits.
    Alnum,
    /// Letters, digits, `_` and `-`.
    Word,
    /// Small hexadecimal digits.
    Hex,
    /// Capital letters and digits.
    Caps,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted,
    /// Base64.
    Base64,
    /// Letters and digits, the last six of which are the CRC-32 of the others.
    Crc,
}

/// How a kind of credential looks.
#[derive(Debug)]
struct Known {
    prefix: &'static str,
    kind: &'static str,
    rest: Rest,
    /// Bytes behind the prefix, at least and at most.
    len: (usize, usize),
}

const fn of(prefix: &'static str, kind: &'static str, rest: Rest, least: usize, most: usize) -> Known {
    Known { prefix, kind, rest, len: (least, most) }
}

/// All that are known; of two that fit the first counts.
const ALL: [Known; 153] = [
    of("ghp_", "github-token", Rest::Crc, 36, 36),
    of("gho_", "github-token", Rest::Crc, 36, 36),
    of("ghu_", "github-token", Rest::Crc, 36, 36),
    of("ghs_", "github-token", Rest::Crc, 36, 36),
    of("ghr_", "github-token", Rest::Crc, 36, 76),
    of("github_pat_", "github-token", Rest::Word, 60, 100),
    of("glpat-", "gitlab-token", Rest::Dotted, 20, 64),
    of("gldt-", "gitlab-token", Rest::Word, 20, 64),
    of("glrt-", "gitlab-token", Rest::Dotted, 20, 64),
    of("glptt-", "gitlab-token", Rest::Word, 40, 64),
    of("glsa_", "grafana-token", Rest::Word, 40, 48),
    of("glc_eyJ", "grafana-token", Rest::Word, 40, 400),
    of("gsk_", "groq-key", Rest::Alnum, 40, 64),
    of("GOCSPX-", "google-secret", Rest::Word, 28, 28),
    of("AIza", "google-key", Rest::Word, 35, 35),
    of("ya29.", "google-token", Rest::Dotted, 30, 1024),
    of("AKIA", "aws-key-id", Rest::Caps, 16, 16),
    of("ASIA", "aws-key-id", Rest::Caps, 16, 16),
    of("ABSK", "aws-key", Rest::Alnum, 100, 200),
    of("AGE-SECRET-KEY-1", "age-key", Rest::Caps, 58, 58),
    of("ATATT3", "atlassian-token", Rest::Word, 60, 250),
    of("sk-ant-", "anthropic-key", Rest::Word, 60, 160),
    of("sk-proj-", "openai-key", Rest::Word, 40, 200),
    of("sk-svcacct-", "openai-key", Rest::Word, 40, 200),
    of("sk-admin-", "openai-key", Rest::Word, 40, 200),
    of("sk-or-v1-", "openrouter-key", Rest::Hex, 64, 64),
    of("sk-lf-", "langfuse-key", Rest::Word, 36, 36),
    of("sk-", "openai-key", Rest::Alnum, 32, 64),
    of("sk_live_", "stripe-key", Rest::Alnum, 24, 128),
    of("sk_test_", "stripe-key", Rest::Alnum, 24, 128),
    of("rk_live_", "stripe-key", Rest::Alnum, 24, 128),
    of("rk_test_", "stripe-key", Rest::Alnum, 24, 128),
    of("whsec_", "webhook-secret", Rest::Alnum, 24, 80),
    of("sq0csp-", "square-secret", Rest::Word, 43, 43),
    of("sq0atp-", "square-token", Rest::Word, 22, 22),
    of("EAAA", "square-token", Rest::Word, 60, 60),
    of("shpat_", "shopify-token", Rest::Hex, 32, 32),
    of("shpss_", "shopify-secret", Rest::Hex, 32, 32),
    of("shpca_", "shopify-token", Rest::Hex, 32, 32),
    of("xoxb-", "slack-token", Rest::Word, 30, 100),
    of("xoxp-", "slack-token", Rest::Word, 30, 100),
    of("xoxa-", "slack-token", Rest::Word, 30, 100),
    of("xoxs-", "slack-token", Rest::Word, 30, 100),
    of("xoxe-", "slack-token", Rest::Word, 30, 200),
    of("xoxc-", "slack-token", Rest::Word, 30, 100),
    of("xoxd-", "slack-token", Rest::Word, 30, 300),
    of("xapp-", "slack-token", Rest::Word, 40, 150),
    of("xai-", "xai-key", Rest::Alnum, 60, 100),
    of("npm_", "npm-token", Rest::Crc, 36, 36),
    of("pypi-AgEI", "pypi-token", Rest::Word, 60, 300),
    of("rubygems_", "rubygems-token", Rest::Hex, 48, 48),
    of("dckr_pat_", "docker-token", Rest::Word, 27, 40),
    of("dckr_oat_", "docker-token", Rest::Word, 27, 40),
    of("dop_v1_", "digitalocean-token", Rest::Hex, 64, 64),
    of("doo_v1_", "digitalocean-token", Rest::Hex, 64, 64),
    of("dor_v1_", "digitalocean-token", Rest::Hex, 64, 64),
    of("dapi", "databricks-token", Rest::Hex, 32, 34),
    of("dp.pt.", "doppler-token", Rest::Alnum, 40, 48),
    of("hf_", "huggingface-token", Rest::Alnum, 34, 40),
    of("hvs.", "vault-token", Rest::Word, 24, 200),
    of("hvb.", "vault-token", Rest::Word, 24, 300),
    of("r8_", "replicate-token", Rest::Alnum, 37, 40),
    of("pplx-", "perplexity-key", Rest::Alnum, 40, 64),
    of("lin_api_", "linear-key", Rest::Alnum, 40, 48),
    of("ntn_", "notion-token", Rest::Alnum, 40, 60),
    of("figd_", "figma-token", Rest::Word, 36, 60),
    of("PMAK-", "postman-key", Rest::Word, 50, 70),
    of("tskey-", "tailscale-key", Rest::Word, 24, 80),
    of("sntrys_", "sentry-token", Rest::Word, 60, 300),
    of("sntryu_", "sentry-token", Rest::Hex, 64, 64),
    of("SG.", "sendgrid-key", Rest::Dotted, 64, 70),
    of("SK", "twilio-key", Rest::Hex, 32, 32),
    of("key-", "mailgun-key", Rest::Hex, 32, 32),
    of("HRKU-", "heroku-key", Rest::Word, 36, 70),
    of("pul-", "pulumi-token", Rest::Hex, 40, 40),
    of("nvapi-", "nvidia-key", Rest::Word, 60, 80),
    of("fo1_", "fly-token", Rest::Word, 43, 43),
    of("vercel_blob_rw_", "vercel-token", Rest::Word, 30, 80),
    of("sbp_", "supabase-token", Rest::Hex, 40, 40),
    of("sb_secret_", "supabase-key", Rest::Word, 30, 60),
    of("cio", "cargo-token", Rest::Alnum, 32, 32),
    of("gloas-", "gitlab-token", Rest::Word, 20, 80),
    of("glcbt-", "gitlab-token", Rest::Word, 20, 64),
    of("glft-", "gitlab-token", Rest::Word, 20, 64),
    of("glimt-", "gitlab-token", Rest::Word, 20, 64),
    of("glagent-", "gitlab-token", Rest::Word, 20, 64),
    of("glwt-", "gitlab-token", Rest::Word, 20, 64),
    of("glsoat-", "gitlab-token", Rest::Word, 20, 64),
    of("glffct-", "gitlab-token", Rest::Word, 20, 64),
    of("ATTA", "trello-token", Rest::Hex, 64, 80),
    of("ATCTT3", "atlassian-token", Rest::Word, 60, 250),
    of("A3-", "1password-key", Rest::Word, 34, 36),
    of("AKCp", "artifactory-key", Rest::Alnum, 60, 80),
    of("AKID", "tencent-key-id", Rest::Alnum, 32, 36),
    of("CCIPAT_", "circleci-token", Rest::Word, 60, 70),
    of("CLOJARS_", "clojars-token", Rest::Alnum, 60, 60),
    of("fm2_", "fly-token", Rest::Base64, 60, 2000),
    of("lsv2_", "langsmith-key", Rest::Word, 40, 60),
    of("mfa.", "discord-token", Rest::Word, 80, 100),
    of("phx_", "posthog-key", Rest::Alnum, 40, 60),
    of("pnu_", "prefect-key", Rest::Alnum, 36, 36),
    of("pscale_", "planetscale-token", Rest::Word, 35, 80),
    of("s.", "vault-token", Rest::Alnum, 24, 24),
    of("secret_", "notion-token", Rest::Alnum, 43, 43),
    of("sgp_", "sourcegraph-token", Rest::Word, 40, 64),
    of("sk.eyJ", "mapbox-token", Rest::Dotted, 60, 300),
    of("sl.", "dropbox-token", Rest::Dotted, 100, 2000),
    of("tfp_", "typeform-token", Rest::Word, 50, 70),
    of("squ_", "sonar-token", Rest::Hex, 40, 40),
    of("sqp_", "sonar-token", Rest::Hex, 40, 40),
    of("sqa_", "sonar-token", Rest::Hex, 40, 40),
    of("e2b_", "e2b-key", Rest::Hex, 40, 40),
    of("api_org_", "huggingface-token", Rest::Alnum, 34, 40),
    of("jina_", "jina-key", Rest::Alnum, 40, 80),
    of("tvly-", "tavily-key", Rest::Word, 28, 60),
    of("NRAK-", "newrelic-key", Rest::Caps, 27, 27),
    of("eyJrIjoi", "grafana-key", Rest::Base64, 60, 400),
    of("pat.", "harness-token", Rest::Dotted, 60, 80),
    of("pat-", "hubspot-token", Rest::Word, 40, 42),
    of("pat", "airtable-token", Rest::Dotted, 79, 79),
    of("1//0", "google-token", Rest::Word, 60, 200),
    of("ABIA", "aws-key-id", Rest::Caps, 16, 16),
    of("ACCA", "aws-key-id", Rest::Caps, 16, 16),
    of("AQVN", "yandex-key", Rest::Word, 35, 38),
    of("ATBB", "bitbucket-token", Rest::Alnum, 32, 32),
    of("CFPAT-", "contentful-token", Rest::Word, 43, 43),
    of("EAA", "facebook-token", Rest::Alnum, 80, 400),
    of("EZAK", "easypost-key", Rest::Alnum, 54, 54),
    of("FLWSECK-", "flutterwave-key", Rest::Word, 32, 40),
    of("GR1348941", "gitlab-token", Rest::Word, 20, 20),
    of("LTAI", "alibaba-key-id", Rest::Alnum, 12, 24),
    of("bkua_", "buildkite-token", Rest::Hex, 40, 40),
    of("dp.", "doppler-token", Rest::Dotted, 43, 70),
    of("dt0c01.", "dynatrace-token", Rest::Dotted, 80, 100),
    of("duffel_", "duffel-token", Rest::Word, 48, 52),
    of("fc-", "firecrawl-key", Rest::Hex, 32, 32),
    of("fio-u-", "frameio-token", Rest::Word, 64, 64),
    of("hvr.", "vault-token", Rest::Word, 24, 300),
    of("ico-", "infracost-key", Rest::Alnum, 32, 32),
    of("napi_", "neon-key", Rest::Alnum, 60, 70),
    of("nfp_", "netlify-token", Rest::Alnum, 36, 40),
    of("ops_eyJ", "1password-token", Rest::Word, 200, 2000),
    of("rdme_", "readme-key", Rest::Alnum, 70, 70),
    of("rnd_", "render-key", Rest::Alnum, 28, 32),
    of("sha256~", "openshift-token", Rest::Word, 43, 43),
    of("shippo_live_", "shippo-key", Rest::Hex, 40, 40),
    of("shppa_", "shopify-token", Rest::Hex, 32, 32),
    of("v1.0-", "cloudflare-key", Rest::Word, 171, 171),
    of("xkeysib-", "brevo-key", Rest::Word, 60, 100),
    of("xoxe.xox", "slack-token", Rest::Word, 100, 250),
    of("csk-", "cerebras-key", Rest::Alnum, 48, 48),
    of("oy2", "nuget-key", Rest::Alnum, 43, 43),
    of("re_", "resend-key", Rest::Word, 32, 40),
];

/// The least and the most that any of them has.
pub(super) const SHORTEST: usize = 16;
const LONGEST: usize = 8192;

/// Of each byte the first that begins with it, and of each the next one: 0 is none, and 1 the first of all.
struct Chains {
    first: [u8; 256],
    next: [u8; ALL.len() + 1],
}

static CHAINS: Chains = chains();

const fn chains() -> Chains {
    let mut chains = Chains { first: [0; 256], next: [0; ALL.len() + 1] };
    let mut at = ALL.len();
    while at > 0 {
        let byte = ALL[at - 1].prefix.as_bytes()[0] as usize;
        chains.next[at] = chains.first[byte];
        chains.first[byte] = at as u8;
        at -= 1;
    }
    chains
}

/// Those that begin with this byte, in order.
fn beginning_with(byte: u8) -> impl Iterator<Item = &'static Known> {
    let at = |at: u8| (at > 0).then_some(at);
    std::iter::successors(at(CHAINS.first[byte as usize]), move |now| at(CHAINS.next[*now as usize]))
        .map(|at| &ALL[at as usize - 1])
}

/// Whether a short word may begin one that goes on behind the sign at its end.
#[inline]
pub(super) fn may_be_short(text: &[u8], at: usize, end: usize) -> bool {
    match text.get(end) {
        Some(b'.') => end - at <= 7 && is_dotted(&text[at..end]),
        Some(b'/' | b'+' | b'~') => goes_on_behind(text, at, end),
        _ => false,
    }
}

/// Whether it is what stands before the full stop of a prefix.
fn is_dotted(word: &[u8]) -> bool {
    let words: [&[u8]; 15] = [
        b"SG", b"atlasv1", b"dp", b"dt0c01", b"hvb", b"hvr", b"hvs", b"mfa", b"pat", b"s", b"sk", b"sl", b"v1",
        b"xoxe", b"ya29",
    ];
    words.contains(&word)
}

fn goes_on_behind(text: &[u8], at: usize, end: usize) -> bool {
    let word = &text[at..end];
    match text[end] {
        b'~' => word == b"sha256" || end - at == 5,
        _ => word.starts_with(b"fm2_") || word.starts_with(b"eyJr") || word == b"1",
    }
}

/// A credential that begins where the word at `at` begins; `end` is the word's end. Most words are spared by a glance.
pub(super) fn known(text: &[u8], at: usize, end: usize, config: &Config) -> Option<Found> {
    if !config.prefixes.is_empty() {
        return own(text, at, config).or_else(|| shipped(text, at, end));
    }
    shipped(text, at, end)
}

fn shipped(text: &[u8], at: usize, end: usize) -> Option<Found> {
    let goes_on = end - at < SHORTEST && may_be_short(text, at, end);
    if !goes_on && end - at < SHORTEST || end - at > LONGEST {
        return None;
    }
    let mut found = beginning_with(text[at]).filter_map(|known| known.find(text, at));
    found.next().or_else(|| jwt(text, at, end)).or_else(|| placed(text, at, end))
}

impl Known {
    fn find(&self, text: &[u8], at: usize) -> Option<Found> {
        let from = at + self.prefix.len();
        if !text.get(at..from)?.eq(self.prefix.as_bytes()) {
            return None;
        }
        let len = text[from..].iter().take_while(|byte| self.rest.takes(**byte)).count();
        let rest = &text[from..from + len];
        let rest = if self.rest == Rest::Dotted { trimmed(rest) } else { rest };
        let fits = (self.len.0..=self.len.1).contains(&rest.len()) && !goes_on(text, from + rest.len(), self.rest);
        (fits && self.is_real(rest)).then(|| Found::new(at, from + rest.len(), self.kind))
    }

    /// Whether it is one, and no stand-in. One whose checksum holds is.
    fn is_real(&self, rest: &[u8]) -> bool {
        if self.rest == Rest::Crc && checksum_holds(rest) {
            return true;
        }
        !is_stand_in(rest) && has_variety(rest)
    }
}

/// Enough different bytes, and no mere counting.
fn has_variety(rest: &[u8]) -> bool {
    let make = super::random::Make::of(rest);
    make.distinct >= 8 && make.steps * 3 <= make.len
}

impl Rest {
    fn takes(self, byte: u8) -> bool {
        match self {
            Self::Alnum | Self::Crc => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::Caps => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
        }
    }
}

/// Whether the word goes on where the credential should end: then it is something else.
fn goes_on(text: &[u8], end: usize, rest: Rest) -> bool {
    text.get(end).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' && rest != Rest::Word)
}

/// Without the full stop of a sentence.
fn trimmed(rest: &[u8]) -> &[u8] {
    &rest[..rest.iter().rposition(|byte| *byte != b'.').map_or(0, |at| at + 1)]
}

/// The checksum in GitHub's and npm's tokens: the last six digits, base 62, are the CRC-32 of what stands before.
#[must_use]
pub fn checksum_holds(rest: &[u8]) -> bool {
    let Some(at) = rest.len().checked_sub(6).filter(|at| *at > 0) else { return false };
    rest[at..] == checksum(&rest[..at])
}

/// That checksum.
#[must_use]
pub fn checksum(body: &[u8]) -> [u8; 6] {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let (mut crc, mut digits) = (crc32(body), [b'0'; 6]);
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(crc % 62) as usize];
        crc /= 62;
    }
    digits
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// A JSON web token: three parts, of which the first two are JSON in base64.
fn jwt(text: &[u8], at: usize, end: usize) -> Option<Found> {
    if !text[at..].starts_with(b"eyJ") || end - at < 16 || text.get(end) != Some(&b'.') {
        return None;
    }
    let second = super::words::word_end(text, end + 1);
    let third = (text.get(second) == Some(&b'.')).then(|| super::words::word_end(text, second + 1))?;
    let is_it = text[end + 1..].starts_with(b"eyJ") && second - end > 8 && third - second > 20;
    is_it.then(|| Found::new(at, third, "jwt"))
}

/// What is known by a part that stands within it: `HEX-us12`, `ID.atlasv1.SECRET`.
fn placed(text: &[u8], at: usize, end: usize) -> Option<Found> {
    let word = &text[at..end];
    if word == b"atlasv1" {
        let start =
            at - text[..at].iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'.').count();
        let until = super::words::word_end(text, end + 1);
        return (at - start >= 14 && until - end > 40).then(|| Found::new(start, until, "terraform-token"));
    }
    if matches!(word.len(), 24..=28) && matches!(word[0], b'M' | b'N' | b'O') && text.get(end) == Some(&b'.') {
        let second = super::words::word_end(text, end + 1);
        let third = super::words::word_end(text, second + 1);
        let is_it = text.get(second) == Some(&b'.') && second - end == 7 && (28..42).contains(&(third - second));
        return (is_it && has_variety(&text[second + 1..third])).then(|| Found::new(at, third, "discord-token"));
    }
    // A secret of an application in Entra: three signs, a digit, `Q~`.
    if text.get(end) == Some(&b'~') && word.len() == 5 && word[4] == b'Q' && word[3].is_ascii_digit() {
        let until =
            end + 1 + text[end + 1..].iter().take_while(|byte| Rest::Dotted.takes(**byte) || **byte == b'~').count();
        return (until - end > 31 && until - end < 41).then(|| Found::new(at, until, "azure-secret"));
    }
    let (key, region) = word.split_at_checked(32)?;
    let is_it = region.starts_with(b"-us") && region.len() < 7 && region[3..].iter().all(u8::is_ascii_digit);
    (is_it && key.iter().all(|byte| Rest::Hex.takes(*byte)) && has_variety(key))
        .then(|| Found::new(at, end, "mailchimp-key"))
}

/// A number, a colon and a secret: bots of Telegram, keys of Asana. The colon stands at `at`.
pub(super) fn of_two(text: &[u8], at: usize) -> Option<Found> {
    let digits = text[..at].iter().rev().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    if digits < 8 || text[at] != b':' {
        return None;
    }
    let end = super::words::word_end(text, at + 1);
    let secret = &text[at + 1..end];
    let telegram = secret.len() == 35 && secret.starts_with(b"AA");
    let asana = secret.len() == 32 && secret.iter().all(|byte| Rest::Hex.takes(*byte));
    let kind = if telegram { "telegram-token" } else { "asana-token" };
    ((telegram || asana) && has_variety(secret)).then(|| Found::new(at + 1, end, kind))
}

/// One of the prefixes that the config names.
fn own(text: &[u8], at: usize, config: &Config) -> Option<Found> {
    config.prefixes.iter().find_map(|(prefix, kind)| {
        let from = at + prefix.len();
        let fits = text[at..].starts_with(prefix.as_bytes());
        let end = from + text.get(from..)?.iter().take_while(|byte| Rest::Dotted.takes(**byte)).count();
        let end = from + trimmed(&text[from..end]).len();
        (fits && end - from >= 8 && !is_stand_in(&text[from..end])).then(|| Found::new(at, end, kind))
    })
}

/// Whether a value looks like what none of these is but machines make all the same.
pub(super) fn is_made(value: &[u8]) -> bool {
    looks_random(value, 16) || is_uuid(value)
}

/// A UUID: no secret by itself, but one where a name says so.
fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_the_crc_of_what_stands_before() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926, "the check value of CRC-32");
        let mut token = b"abcdefghijklmnopqrstuvwxyzABCD".to_vec();
        let sum = checksum(&token);
        token.extend(sum);
        assert!(checksum_holds(&token), "also of what does not look random");
        token[3] = b'x';
        assert!(!checksum_holds(&token));
    }

    #[test]
    fn what_stands_before_a_full_stop_in_a_prefix_is_looked_at() {
        for known in ALL {
            let dotted = known.prefix.split_once('.').filter(|(word, _)| word.len() < SHORTEST);
            assert!(dotted.is_none_or(|(word, _)| is_dotted(word.as_bytes())), "{known:?}");
        }
    }

    #[test]
    fn no_kind_is_shadowed_by_another() {
        for (at, known) in ALL.iter().enumerate() {
            let shadowed = ALL[..at].iter().find(|before| known.prefix.starts_with(before.prefix));
            assert!(shadowed.is_none(), "{known:?} by {shadowed:?}");
        }
    }
}
