//! Tokens that workers sign for themselves: JWTs by ES256, whose header names the key. A token proves who has the private key, and nothing else: what its
//! claims say about rights is never read.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use runvoy_model::base58;
use runvoy_model::credential::PublicKey;
use runvoy_model::time::UnixMs;
use serde::Deserialize;

/// Clocks of workers may be off by so much.
const LEEWAY_SECONDS: f64 = 60.0;
/// Longer texts are not looked at.
const MOST_BYTES: usize = 8 << 10;

/// A token that was read and not yet believed.
pub(crate) struct Token<'t> {
    /// What was signed.
    signed: &'t str,
    signature: Vec<u8>,
    claims: &'t str,
    /// SHA-256 of the public key that it names.
    pub(crate) fingerprint: [u8; 32],
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: String,
    /// What must be understood, and is not here.
    #[serde(default)]
    crit: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Claims {
    exp: f64,
    #[serde(default)]
    nbf: Option<f64>,
    aud: Audience,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// Why a token proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadToken {
    /// It is none, or another key signed it.
    Invalid,
    /// Its owner signed it for somebody else.
    OtherAudience,
    /// It was good once.
    Expired,
}

impl<'t> Token<'t> {
    /// Whether a text is meant to be one.
    pub(crate) fn looks_like(text: &str) -> bool {
        text.starts_with("eyJ") && text.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    /// Reads a token as far as it says whose it is.
    pub(crate) fn read(text: &'t str) -> Option<Self> {
        if text.len() > MOST_BYTES {
            return None;
        }
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Header = decoded(header)?;
        if header.alg != "ES256" || header.crit.is_some() {
            return None;
        }
        let fingerprint = base58::decode(&header.kid)?.try_into().ok()?;
        Some(Self { signed, signature: URL_SAFE_NO_PAD.decode(signature).ok()?, claims, fingerprint })
    }

    /// Believes it: this key signed it, for one of these audiences, and its time has not passed. Returns when it ends.
    pub(crate) fn verify(&self, key: &PublicKey, audiences: &[&str], now: UnixMs) -> Result<UnixMs, BadToken> {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.point());
        key.verify(self.signed.as_bytes(), &self.signature).map_err(|_| BadToken::Invalid)?;
        let claims: Claims = decoded(self.claims).ok_or(BadToken::Invalid)?;
        let given = match &claims.aud {
            Audience::One(one) => std::slice::from_ref(one),
            Audience::Several(several) => several,
        };
        let ours = |given: &String| audiences.iter().any(|ours| same_address(ours, given));
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of our time have far fewer than 52 bits")]
        let now = now.0 as f64 / 1_000.0;
        if !given.iter().any(ours) {
            return Err(BadToken::OtherAudience);
        }
        if !claims.exp.is_finite() || claims.nbf.is_some_and(|from| from - LEEWAY_SECONDS > now) {
            return Err(BadToken::Invalid);
        }
        if claims.exp + LEEWAY_SECONDS <= now {
            return Err(BadToken::Expired);
        }
        #[expect(clippy::cast_possible_truncation, reason = "a cast that saturates: a token may say that it ends never")]
        Ok(UnixMs((claims.exp * 1_000.0) as i64))
    }
}

/// The fingerprint of the public key that a signed token names; `None` for what is no such token. It proves nothing.
pub fn token_fingerprint(text: &str) -> Option<[u8; 32]> {
    let token = if Token::looks_like(text) { Token::read(text)? } else { return None };
    Some(token.fingerprint)
}

/// A slash at the end of an address says nothing.
fn same_address(one: &str, other: &str) -> bool {
    !one.is_empty() && one.trim_end_matches('/') == other.trim_end_matches('/')
}

fn decoded<T: for<'de> Deserialize<'de>>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use runvoy_model::hex::unhex;
    use serde_json::{Value, json};

    use super::*;

    struct Signer {
        pair: EcdsaKeyPair,
        key: PublicKey,
    }

    impl Signer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
            let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).expect("the key");
            let mut spki = unhex::<26>("3059301306072a8648ce3d020106082a8648ce3d030107034200").expect("digits").to_vec();
            spki.extend(pair.public_key().as_ref());
            Self { pair, key: PublicKey::new(&spki).expect("a P-256 key") }
        }

        fn kid(&self) -> String {
            base58::encode(self.key.fingerprint())
        }

        fn sign(&self, header: &Value, claims: &Value) -> String {
            let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let signed = format!("{}.{}", part(header), part(claims));
            let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
        }

        fn token(&self, claims: &Value) -> String {
            self.sign(&json!({"alg": "ES256", "typ": "JWT", "kid": self.kid()}), claims)
        }
    }

    const NOW: UnixMs = UnixMs(1_800_000_000_000);
    const AUDIENCES: [&str; 3] = ["runvoy", "", "https://run.example"];

    fn judged(signer: &Signer, text: &str) -> Result<UnixMs, BadToken> {
        Token::read(text).ok_or(BadToken::Invalid)?.verify(&signer.key, &AUDIENCES, NOW)
    }

    #[test]
    fn a_token_of_the_key_for_us_and_in_time_is_believed() {
        let signer = Signer::new();
        for aud in [json!("runvoy"), json!(["other", "runvoy"]), json!("https://run.example/")] {
            let text = signer.token(&json!({"aud": aud, "exp": 1_800_000_600, "roles": ["admin"], "principal_id": "x"}));
            assert!(Token::looks_like(&text));
            assert_eq!(Token::read(&text).map(|token| token.fingerprint), Some(*signer.key.fingerprint()));
            assert_eq!(judged(&signer, &text), Ok(UnixMs(1_800_000_600_000)));
        }
    }

    #[test]
    fn a_token_that_is_over_or_not_ours_is_not() {
        let signer = Signer::new();
        let claims = |aud: Value, exp: i64| json!({"aud": aud, "exp": exp});
        for (claims, why) in [
            (claims(json!("runvoy"), 1_799_999_940), BadToken::Expired),
            (claims(json!("another"), 1_800_000_600), BadToken::OtherAudience),
            (claims(json!([]), 1_800_000_600), BadToken::OtherAudience),
            (claims(json!(""), 1_800_000_600), BadToken::OtherAudience),
            (json!({"aud": "runvoy"}), BadToken::Invalid),
            (json!({"exp": 1_800_000_600}), BadToken::Invalid),
            (json!({"aud": "runvoy", "exp": "1800000600"}), BadToken::Invalid),
            (json!({"aud": "runvoy", "exp": 1_800_000_600, "nbf": 1_800_000_061}), BadToken::Invalid),
        ] {
            assert_eq!(judged(&signer, &signer.token(&claims)), Err(why), "{claims}");
        }
        assert!(
            judged(&signer, &signer.token(&json!({"aud": "runvoy", "exp": 1_799_999_941, "nbf": 1_800_000_060}))).is_ok(),
            "clocks differ"
        );
    }

    #[test]
    fn another_key_another_algorithm_or_a_changed_token_is_not_believed() {
        let (signer, other) = (Signer::new(), Signer::new());
        let claims = json!({"aud": "runvoy", "exp": 1_800_000_600});
        let named = |alg: &str, kid: String| json!({"alg": alg, "kid": kid});
        let good = signer.token(&claims);
        assert_eq!(judged(&signer, &other.sign(&named("ES256", signer.kid()), &claims)), Err(BadToken::Invalid), "another signed it");
        for alg in ["none", "HS256", "RS256", "es256", ""] {
            assert!(Token::read(&signer.sign(&named(alg, signer.kid()), &claims)).is_none(), "{alg}");
        }
        let critical = json!({"alg": "ES256", "kid": signer.kid(), "crit": ["x"]});
        assert!(Token::read(&signer.sign(&critical, &claims)).is_none());
        assert!(Token::read(&signer.sign(&json!({"alg": "ES256"}), &claims)).is_none(), "no key is named");
        let (signed, signature) = good.rsplit_once('.').expect("three parts");
        let (header, _) = signed.split_once('.').expect("three parts");
        let swapped = URL_SAFE_NO_PAD.encode(json!({"aud": "runvoy", "exp": 1_900_000_000}).to_string());
        for bad in [format!("{header}.{swapped}.{signature}"), format!("{signed}."), signed.to_owned(), format!("{good}a"), "a.b.c".into()]
        {
            assert!(judged(&signer, &bad).is_err(), "{bad}");
        }
        assert!(Token::read(&"e".repeat(MOST_BYTES + 1)).is_none());
    }
}
