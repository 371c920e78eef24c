//! Names that tell that their value is a secret.
use crate::config::Config;

/// What a name tells of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// People may have chosen it: a password.
    Chosen,
    /// A machine has made it: a key, a token.
    Made,
    /// It is an `Authorization` header: a scheme, then the value.
    Header,
    /// It is a `Cookie` header: pairs.
    Cookies,
    /// It may be `user:password` in base64.
    Pair,
}

/// How names that tell something end, by their last letter; those of queries too.
const fn endings(last: u8) -> &'static [&'static [u8]] {
    match last {
        b'n' => &[b"token", b"authorization"],
        b't' => &[b"secret", b"pat", b"jwt", b"default"],
        b'd' => &[b"password", b"passwd", b"pwd"],
        b's' => &[b"pass", b"credentials"],
        b'e' => &[b"passphrase", b"passcode", b"cookie", b"signature", b"code", b"value", b"base"],
        b'w' => &[b"pw"],
        b'l' => &[b"credential"],
        b'y' => &[b"key"],
        b'k' => &[b"psk"],
        b'h' => &[b"auth"],
        b'a' => &[b"data"],
        b'g' => &[b"sig", b"string"],
        b'r' => &[b"str"],
        _ => &[],
    }
}

/// Most bytes of a name that are looked at.
const MOST: usize = 64;

/// The name that ends at `end`, and where it begins. It may be quoted, and there may be space between it and the sign.
#[must_use]
pub fn before(text: &[u8], end: usize) -> Option<(usize, &[u8])> {
    let floor = end.saturating_sub(MOST);
    let mut end = end;
    while end > floor && is_between(text[end - 1]) {
        end -= 1;
    }
    let mut start = end;
    while start > floor && is_name(text[start - 1]) {
        start -= 1;
    }
    // The letter of an escape is no part of the name behind it.
    let slashes = text[..start].iter().rev().take_while(|byte| **byte == b'\\').count();
    if slashes > 0 && start + 1 < end && matches!(text[start], b'n' | b'r' | b't') {
        start += 1;
    }
    (start < end).then(|| (start, &text[start..end]))
}

/// Whether the name before the sign at `end` may tell anything: a glance at its end, which spares most signs the rest.
#[must_use]
pub fn may_tell(text: &[u8], end: usize, config: &Config) -> bool {
    let mut end = end;
    while end > 0 && (is_between(text[end - 1]) || text[end - 1].is_ascii_digit()) {
        end -= 1;
    }
    let Some(last) = text[..end].last() else { return false };
    !config.names.is_empty() || endings(last.to_ascii_lowercase()).iter().any(|ending| ends_with(&text[..end], ending))
}

/// Whether it ends so, case apart.
fn ends_with(text: &[u8], ending: &[u8]) -> bool {
    text.len().checked_sub(ending.len()).is_some_and(|at| text[at..].eq_ignore_ascii_case(ending))
}

/// What may stand between a name and its sign: `name =`, `"name":`, `name: =`, `name["key"] =`.
fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'"' | b'\'' | b'\\' | b']' | b':' | b'?')
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// What a name tells by its last parts; none for an ordinary one.
#[must_use]
pub fn tells(name: &[u8], config: &Config) -> Option<Tells> {
    let parts = parts(name);
    let (one, two, three) = (joined(&parts, 1), joined(&parts, 2), joined(&parts, 3));
    let plain = joined(&parts, parts.len());
    if config.names.contains(&plain) || config.names.contains(&one) {
        return Some(Tells::Chosen);
    }
    match plain.as_str() {
        "authorization" | "proxyauthorization" => return Some(Tells::Header),
        "cookie" | "setcookie" => return Some(Tells::Cookies),
        _ => {}
    }
    match one.as_str() {
        "password" | "passwd" | "pwd" | "pass" | "passphrase" | "passcode" | "pw" | "psk" | "credential"
        | "credentials" => {
            return Some(Tells::Chosen);
        }
        _ if one.ends_with("password") || one.ends_with("secret") => return Some(Tells::Chosen),
        "pat" | "jwt" => return Some(Tells::Made),
        "auth" => return Some(Tells::Pair),
        _ if one.ends_with("token") && !is_page_token(&one) && !is_page_token(&two) => return Some(Tells::Made),
        "apikey" | "accesskey" | "secretkey" | "authkey" | "privatekey" => return Some(Tells::Made),
        _ => {}
    }
    const KEYS: [&str; 22] = [
        "keydata",
        "keybase",
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "authkey",
        "signingkey",
        "encryptionkey",
        "masterkey",
        "accountkey",
        "servicekey",
        "storagekey",
        "subscriptionkey",
        "appkey",
        "clientkey",
        "adminkey",
        "deploykey",
        "rolekey",
        "licensekey",
        "sharedkey",
        "hmackey",
    ];
    let is_key = one == "key" && is_variable(name) && !PLAIN_KEYS.contains(&two.as_str());
    if is_key || KEYS.contains(&two.as_str()) || KEYS.contains(&three.as_str()) {
        return Some(Tells::Made);
    }
    None
}

/// Variables that name keys which are no secrets.
const PLAIN_KEYS: [&str; 12] = [
    "publickey",
    "publishablekey",
    "primarykey",
    "foreignkey",
    "cachekey",
    "sortkey",
    "partitionkey",
    "hostkey",
    "anonkey",
    "groupkey",
    "indexkey",
    "registrykey",
];

/// Tokens by which one pages or guards forms are no secrets worth the noise.
fn is_page_token(two: &str) -> bool {
    matches!(
        two,
        "nexttoken"
            | "pagetoken"
            | "continuationtoken"
            | "synctoken"
            | "eostoken"
            | "bostoken"
            | "padtoken"
            | "unktoken"
            | "csrftoken"
            | "canceltoken"
    )
}

/// The parts of a name, in small letters: `DB_PASSWORD`, `dbPassword`, `db-password` are `db` and `password`. Digits at the
/// end of a part are left out.
fn parts(name: &[u8]) -> Vec<String> {
    let mut parts = vec![String::new()];
    for (at, byte) in name.iter().enumerate() {
        let hump = byte.is_ascii_uppercase() && at > 0 && name[at - 1].is_ascii_lowercase();
        if (hump || !byte.is_ascii_alphanumeric()) && parts.last().is_some_and(|part| !part.is_empty()) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| byte.is_ascii_alphabetic()) {
            part.push(char::from(byte.to_ascii_lowercase()));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The last parts as one.
fn joined(parts: &[String], last: usize) -> String {
    parts[parts.len().saturating_sub(last)..].concat()
}

/// Whether a name is written as environment variables are: `DB_PASSWORD`.
#[must_use]
pub fn is_variable(name: &[u8]) -> bool {
    name.len() > 2 && name.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_by_how_it_ends() {
        let told = |name: &str| tells(name.as_bytes(), &Config::default());
        for name in ["password", "DB_PASSWORD", "dbPassword", "smtp-pass", "spring.datasource.password", "PASSWORD2"] {
            assert_eq!(told(name), Some(Tells::Chosen), "{name}");
        }
        for name in ["GITHUB_TOKEN", "accessToken", "token", "x-auth-token"] {
            assert_eq!(told(name), Some(Tells::Made), "{name}");
        }
        for name in
            ["api_key", "OPENAI_API_KEY", "apiKey", "APIKEY", "aws_secret_access_key", "X-Api-Key", "service_role_key"]
        {
            assert_eq!(told(name), Some(Tells::Made), "{name}");
        }
        for name in [
            "max_tokens",
            "token_type",
            "tokenizer",
            "primary_key",
            "public_key",
            "bypass",
            "compass",
            "key",
            "passwordField",
            "next_token",
            "secret_name",
            "id",
        ] {
            assert_eq!(told(name), None, "{name}");
        }
        assert_eq!(told("Authorization"), Some(Tells::Header));
    }

    #[test]
    fn a_name_is_found_before_its_sign() {
        let name = |text: &'static str| {
            before(text.as_bytes(), text.len()).map(|(_, name)| std::str::from_utf8(name).expect("text"))
        };
        assert_eq!(name(r#"{\"api_key\""#), Some("api_key"));
        assert_eq!(name(r"x\nDB_PASS"), Some("DB_PASS"));
        assert_eq!(name(r#"config[\"token\"] "#), Some("token"));
        assert_eq!(name("  password :"), Some("password"));
        assert_eq!(name("== "), None);
    }
}
