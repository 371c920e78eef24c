//! The labelled set: texts as they stand in sessions, with the secrets in them, or none.
use crate::thrown::{ALNUM, B64, Dice, HEX, secret};

/// A text, and the secret in it.
pub struct Labelled {
    pub text: String,
    pub secret: Option<String>,
    pub group: &'static str,
}

/// Kinds that show what they are wherever they stand.
const KNOWN: [&str; 15] = [
    "github",
    "github-fine",
    "gitlab",
    "npm",
    "aws-id",
    "openai",
    "openai-old",
    "anthropic",
    "slack",
    "stripe",
    "google",
    "huggingface",
    "sendgrid",
    "jwt",
    "pem",
];
/// Kinds that only a name beside them shows.
const MADE: [&str; 5] = ["aws-secret", "hex-key", "alnum-key", "small-key", "uuid"];

/// Where a known one may stand; `@` is its place.
const AROUND: [&str; 12] = [
    "@",
    "The key is @.",
    "export TOKEN=@",
    "{\"a\": [1, \"@\"], \"b\": 2}",
    "curl -H 'X-Thing: @' https://x.test",
    "- @\n+ @",
    "  12\tconst k = \"@\";",
    "error: 401 for key @, retrying",
    "url?access=@&b=1",
    "git clone https://@@x.test/a.git",
    "let key = String::from(\"@\"); // old",
    "{\\\"nested\\\": \\\"@\\\"}",
];
/// Where a made one may stand.
const NAMED: [&str; 14] = [
    "API_KEY=@",
    "export SERVICE_TOKEN=\"@\"",
    "{\"api_key\": \"@\", \"x\": 1}",
    "apiKey: '@',",
    "client_secret = \"@\"",
    "token: @",
    "curl -H \"X-Api-Key: @\" https://x.test",
    "https://x.test/a?access_token=@&page=2",
    "aws_secret_access_key = @",
    "Authorization: Bearer @",
    "\"Authorization\": \"Bearer @\"",
    "const accessToken = `@`;",
    "--api-key @ --verbose",
    "{\\\"secretKey\\\": \\\"@\\\"}",
];
/// Where a password may stand.
const PASSWORDS: [&str; 10] = [
    "DB_PASSWORD=@",
    "password: \"@\"",
    "\"password\": \"@\"",
    "postgres://app:@@db.test:5432/main",
    "PGPASSWORD=@ psql -h db",
    "spring.datasource.password=@",
    "curl -u admin:@ https://x.test",
    "redis://:@@cache.test:6379",
    "smtp_pass = '@'",
    "mysql --password @ main",
];

/// All of it: every kind at every place.
pub fn secrets(dice: &mut Dice) -> Vec<Labelled> {
    let mut all = Vec::new();
    let mut add = |group, kinds: &[&str], places: &[&str], dice: &mut Dice| {
        for (kind, place) in kinds.iter().flat_map(|kind| places.iter().map(move |place| (kind, place))) {
            let secret = secret(kind, dice);
            let text = put(place, &secret);
            all.push(Labelled { text, secret: Some(secret), group });
        }
    };
    add("known by form", &KNOWN, &AROUND, dice);
    add("named keys and tokens", &MADE, &NAMED, dice);
    (0..6).for_each(|_| add("passwords", &["password"], &PASSWORDS, dice));
    all
}

/// `@` is the secret's place; `@@` is the place, and an `@` behind it.
fn put(place: &str, secret: &str) -> String {
    place.replace("@@", &format!("{secret}\u{1}")).replace('@', secret).replace('\u{1}', "@")
}

/// Texts without a secret that look a little like it.
pub fn harmless(dice: &mut Dice) -> Vec<Labelled> {
    let mut texts: Vec<String> = PLAIN.iter().map(|text| (*text).to_owned()).collect();
    for _ in 0..12 {
        let (hex, sha, base) = (dice.of(HEX, 40), dice.of(HEX, 64), dice.of(B64, 400));
        let uuid = secret("uuid", dice);
        texts.extend([
            format!("commit {hex}\nAuthor: A <a@x.test>"),
            format!("index {}..{} 100644", &hex[..7], &sha[..7]),
            format!("checksum = \"{sha}\""),
            format!("\"integrity\": \"sha512-{}==\"", &base[..86]),
            format!("image: app@sha256:{sha}"),
            format!("{{\"id\": \"{uuid}\", \"requestId\": \"{uuid}\"}}"),
            format!("data:image/png;base64,{base}"),
            format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} me@host", dice.of(B64, 43)),
            format!("-----BEGIN CERTIFICATE-----\n{base}\n-----END CERTIFICATE-----"),
            format!("etag: W/\"{}\"", dice.of(ALNUM, 32)),
            format!("/static/js/main.{}.chunk.js", &hex[..8]),
            format!("session {uuid} tokens: {}", dice.below(100_000)),
            format!("cache_key: {sha}"),
            format!("https://x.test/files/{}/view?page=2&size=50", dice.of(ALNUM, 28)),
        ]);
    }
    texts.into_iter().map(|text| Labelled { text, secret: None, group: "harmless" }).collect()
}

const PLAIN: [&str; 44] = [
    "const token = getToken();",
    "password: string;",
    "token: &str,",
    "let token = self.next_token()?;",
    "api_key=os.environ[\"API_KEY\"]",
    "API_KEY=${API_KEY}",
    "API_KEY=<your-api-key>",
    "export OPENAI_API_KEY=sk-...",
    "OPENAI_API_KEY=your_api_key_here",
    "max_tokens: 4096",
    "\"total_tokens\": 128000, \"token_type\": \"Bearer\"",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <token>",
    "headers.Authorization = `Bearer ${token}`",
    "secret: process.env.JWT_SECRET",
    "secret_key = settings.SECRET_KEY",
    "PRIMARY KEY (id)",
    "foreign_key: users.id",
    "if (password === confirmPassword) {",
    "password = models.CharField(max_length=128)",
    "type: Opaque\nkind: Secret",
    "secretKeyRef:\n  name: db\n  key: password",
    "passwd:x:1000:1000",
    "token::Kind::Ident",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "postgres://user:password@localhost/db",
    "https://user@example.com/path",
    "fn parse_token(input: &str) -> Option<Token>",
    "the password must have at least 8 characters",
    "Please enter your password: ",
    "sk-button sk-button--primary",
    "the basic idea of a bearer of news",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
    "if text.startswith(\"-----BEGIN PRIVATE KEY-----\"):",
    "docker run -u 1000:1000 image",
    "git config --global user.name \"A B\"",
    "key: value",
    "credentials: include",
    "xoxb-your-token-here",
    "Basic usage: see below",
    "let pass = 3; let token = \"\";",
    "next_page_token: \"CAUQAA\"",
];
