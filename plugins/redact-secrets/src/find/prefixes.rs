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
const ALL: [Known; 82] = [
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
    of("re_", "resend-key", Rest::Word, 32, 40),
];

/// The least and the most that any of them has.
pub(super) const SHORTEST: usize = 16;
const LONGEST: usize = 8192;
/// The most that those have before a full stop which have one in their prefix.
pub(super) const SHORTEST_DOTTED: usize = 4;

/// The bytes with which any of them begins.
static BEGINS: [bool; 256] = begins();

const fn begins() -> [bool; 256] {
    let mut begins = [false; 256];
    let mut at = 0;
    while at < ALL.len() {
        begins[ALL[at].prefix.as_bytes()[0] as usize] = true;
        at += 1;
    }
    begins[b'e' as usize] = true;
    begins
}

/// A credential that begins where the word at `at` begins; `end` is the word's end. Most words are spared by a glance.
pub(super) fn known(text: &[u8], at: usize, end: usize, config: &Config) -> Option<Found> {
    if !config.prefixes.is_empty() {
        return own(text, at, config).or_else(|| shipped(text, at, end));
    }
    shipped(text, at, end)
}

fn shipped(text: &[u8], at: usize, end: usize) -> Option<Found> {
    let short = end - at < SHORTEST && (end - at > SHORTEST_DOTTED || text.get(end) != Some(&b'.'));
    if short || !BEGINS[text[at] as usize] || end - at > LONGEST {
        return None;
    }
    let by_prefix = ALL.iter().filter(|known| known.prefix.as_bytes()[0] == text[at]);
    let mut found = by_prefix.filter_map(|known| known.find(text, at));
    found.next().or_else(|| jwt(text, at, end))
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
    fn no_kind_is_shadowed_by_another() {
        for (at, known) in ALL.iter().enumerate() {
            let shadowed = ALL[..at].iter().find(|before| known.prefix.starts_with(before.prefix));
            assert!(shadowed.is_none(), "{known:?} by {shadowed:?}");
        }
    }
}
