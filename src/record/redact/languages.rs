//! Passwords, codes and keys behind the word for them, in any language a program may speak.

use std::sync::LazyLock;

use regex::Regex;

use super::Kind;
use super::patterns::{Pattern, checked, is_value};

/// Words for a password, a passphrase or a secret code, as parts of a regular expression.
/// An accent may be missing, or stand behind its letter as a sign of its own.
const WORDS: &[&str] = &[
    // English
    r"pass[ _-]?(?:word|phrase|code)s?",
    r"passwd",
    r"(?:recovery|backup|verification|security|access|one[ -]time|2fa|mfa|otp)[ _-]code",
    r"seed[ _-]phrase|mnemonic",
    // German, Dutch
    r"(?:[a-z]+-?)?(?:passwort|kennwort|passphrase|losungswort|geheimwort|zugangscode|zugangsdaten|geheimzahl)e?s?",
    r"pa(?:ss|ß)w(?:o|ö)rter",
    r"(?:api|zugriffs|zugangs|geheim)[- ]?schl(?:u\u{308}?|ü|ue)ssel",
    r"wachtwoord(?:en)?|wachtzin|toegangscode",
    // French, Spanish, Catalan, Galician, Basque, Portuguese, Italian, Romanian
    r"mots?[ _-]de[ _-]passe|mdp|phrase[ _-]secr(?:e[\u{300}\u{301}]?|è)te|code[ _-]secret",
    r"cl(?:e\u{301}?|é)(?:[ _-](?:secr(?:e\u{300}?|è)te|api|d['’]acc(?:e\u{300}?|è)s))",
    r"contrase(?:n\u{303}?|ñ|ny)as?|contrasenyes|contrasinal|pasahitza",
    r"clave(?:[ _-](?:secreta|de[ _-](?:acceso|api)))?|frase[ _-]de[ _-](?:contrase(?:n\u{303}?|ñ)a|seguridad)",
    r"senhas?|palavra[ _-]passe|palavra[ _-]chave",
    r"parola(?:[ _-](?:d['’]ordine|chiave))?|chiave[ _-](?:segreta|api)|codice[ _-]segreto",
    r"parol(?:a\u{306}|ă)",
    // Nordic and Baltic
    r"l(?:o\u{308}?|ö)senord(?:et)?|adgangskode|kodeord|passord(?:et)?|salasana|lykilor(?:ð|d)",
    r"salas(?:o\u{303}?|õ)na|parool|parole|slapta(?:z\u{30c}?|ž)odis",
    // Slavic in Latin letters, Hungarian, Turkish, Celtic, Indonesian, Vietnamese, Swahili
    r"has(?:l|ł)o|heslo|lozinka|zaporka|geslo|lozinku",
    r"jelsz(?:o\u{301}?|ó)|(?:s\u{327}?|ş)ifre|cyfrinair|pasfhocal|pasvorto",
    r"kata[ _-](?:sandi|laluan)|nenosiri|m(?:a|ậ|â)t[ _-]kh(?:a|ẩ|â)u",
    // Cyrillic, Greek, Armenian, Georgian
    r"парол[а-яіїєґ]{0,3}|лозинк[а-я]|шифра|секретный ключ|кодовое слово",
    r"κωδικ(?:ό|ο\u{301}?)ς(?: πρ(?:ό|ο\u{301}?)σβασης)?|συνθηματικ(?:ό|ο\u{301}?)",
    r"գաղտնաբառ|პაროლი",
    // right to left
    r"كلمة (?:المرور|السر)|گذرواژه|رمز عبور|סיסמ[האת]",
    // South and East Asia
    r"पासवर्ड|कूटशब्द|পাসওয়ার্ড|கடவுச்சொல்|รหัสผ่าน",
    r"密[码碼钥鑰]|口令|通行[码碼]|暗証番号|パスワード|パスコード|合言葉|비밀번호|암호|패스워드",
];

/// What may stand between the word and its sign: whose password it is.
const WHOSE: &str = r#"(?:\s*\([^()\r\n]{1,40}\)|(?:\s+[^\s:=<>"«»]{1,30}){1,4}?)?"#;

/// `password for jane: x`, `Passwort (root) = x`, `密码：x`: to the end of the line. A word with
/// a sign or digits beside it (`db_passwort2`) is one as well.
static BEHIND_A_SIGN: LazyLock<String> = LazyLock::new(|| {
    format!(
        r#"(?i)(?:^|[^\p{{Latin}}])(?:{})[0-9]*["'»”’`]?{WHOSE}\s*(?:=>?|:|：|＝|->|→)\s*["'«„“‘`]?(?P<s>[^\s"'«»„“”‘’`<>][^\r\n"'«»„“”‘’`]{{2,}})"#,
        WORDS.join("|")
    )
});

/// `mot de passe « x »`, `contraseña 'x'`.
static WITHIN_QUOTES: LazyLock<String> = LazyLock::new(|| {
    format!(
        r#"(?i)(?:^|[^\p{{Latin}}])(?:{})[0-9]*[^"'«»„“”‘’`「」『』\r\n]{{0,24}}(?:"(?P<q>[^"\r\n]{{3,}})"|'(?P<d>[^'\r\n]{{3,}})'|[«„“‘`「『]\s*(?P<s>[^«»„“”‘’`「」『』\r\n]{{3,}}))"#,
        WORDS.join("|")
    )
});

/// `the password is x`, `das Kennwort lautet x`, `la contraseña es x`, `密码是x`: one word.
static BEHIND_A_VERB: LazyLock<String> = LazyLock::new(|| {
    format!(
        r#"(?i)(?:^|[^\p{{Latin}}])(?:{})\s*(?:\b(?:is|was|set to|changed to|ist|war|lautet|est|es|è|é|är|er|jest|to|je|on|is nu)\s+|это\s+|—\s+|–\s+|は|是|为|為|은|는)\s*(?:now\s+|jetzt\s+|nun\s+)?(?P<s>[^\s"'«»„“”‘’`<>,;]{{3,}})"#,
        WORDS.join("|")
    )
});

/// What programs ask for besides, and print in other lines.
const ASKED: &str = r"(?:api|access|secret)[ _-]?key|(?:access|auth|api|bearer)[ _-]?token|secret";

/// A word for a password at the end of a line: what follows is on the next one.
static AT_THE_END: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)(?:^|[^\p{{Latin}}])(?:{}|{ASKED})[0-9]*{WHOSE}\s*(?:=|:|：|＝|->|→)\s*$",
        WORDS.join("|")
    ))
    .ok()
});

/// A short code: digits say nothing elsewhere.
const PIN: &str = r#"(?i)(?:^|[^a-z_])(?:pin|otp|puk|totp|tan)(?:[ _-]?(?:code|nummer|number))?["']?\s*(?:[:=]|\bis\b|\bist\b|\blautet\b)\s*["']?(?P<s>\d[\d -]{2,10}\d)\b"#;

/// The patterns of this subject.
pub(super) fn patterns() -> Vec<Pattern> {
    vec![
        checked(Kind::Token, &BEHIND_A_SIGN, is_value),
        checked(Kind::Token, &WITHIN_QUOTES, is_value),
        checked(Kind::Token, &BEHIND_A_VERB, is_told),
        checked(Kind::Token, PIN, |_| true),
    ]
}

/// Whether the next line may be a password: this one ends with the word for it.
pub(super) fn asks(line: &str) -> bool {
    AT_THE_END.as_ref().is_some_and(|r| r.is_match(line))
}

/// What a sentence says of a password is one, unless it says how long or how good it is.
fn is_told(text: &str) -> bool {
    const SAID: [&str; 36] = [
        "a",
        "an",
        "the",
        "too",
        "very",
        "not",
        "now",
        "used",
        "sent",
        "asked",
        "read",
        "being",
        "stored",
        "hidden",
        "masked",
        "weak",
        "strong",
        "short",
        "long",
        "needed",
        "optional",
        "correct",
        "invalid",
        "falsch",
        "richtig",
        "nicht",
        "zu",
        "leer",
        "ung\u{fc}ltig",
        "incorrecta",
        "incorrect",
        "obligatoire",
        "trop",
        "muy",
        "demasiado",
        "needed",
    ];
    is_value(text) && !SAID.iter().any(|said| text.eq_ignore_ascii_case(said))
}

#[cfg(test)]
mod tests {
    use super::super::patterns::{covers, find};
    use super::*;

    #[test]
    fn a_password_is_found_behind_the_word_for_it_in_any_language() {
        for text in [
            "Passwort: pl4nted",
            "PASSWORT=pl4nted",
            "db_passwort2 = pl4nted",
            "Kennwort f\u{fc}r jane: pl4nted",
            "Ihr WLAN-Kennwort lautet pl4nted",
            "API-Schl\u{fc}ssel: pl4nted",
            "API-Schlu\u{308}ssel: pl4nted",
            "contrase\u{f1}a: pl4nted",
            "contrasen\u{303}a: pl4nted",
            "contrasena=pl4nted",
            "la contrase\u{f1}a es pl4nted",
            "clave: pl4nted",
            "mot de passe : pl4nted",
            "mot_de_passe=pl4nted",
            "mot de passe \u{ab} pl4nted \u{bb}",
            "mdp: pl4nted",
            "senha: pl4nted",
            "palavra-passe: pl4nted",
            "parola d'ordine: pl4nted",
            "wachtwoord: pl4nted",
            "l\u{f6}senord: pl4nted",
            "adgangskode: pl4nted",
            "salasana: pl4nted",
            "has\u{142}o: pl4nted",
            "heslo: pl4nted",
            "jelsz\u{f3}: pl4nted",
            "\u{15f}ifre: pl4nted",
            "\u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}: pl4nted",
            "\u{41f}\u{410}\u{420}\u{41e}\u{41b}\u{42c} \u{2014} pl4nted",
            "\u{3ba}\u{3c9}\u{3b4}\u{3b9}\u{3ba}\u{3cc}\u{3c2}: pl4nted",
            "\u{5bc6}\u{7801}\u{ff1a}pl4nted",
            "\u{7528}\u{6237}\u{5bc6}\u{7801}: pl4nted",
            "\u{5bc6}\u{7801}\u{662f}pl4nted",
            "\u{30d1}\u{30b9}\u{30ef}\u{30fc}\u{30c9}: pl4nted",
            "\u{be44}\u{bc00}\u{bc88}\u{d638}: pl4nted",
            "\u{5e1}\u{5d9}\u{5e1}\u{5de}\u{5d4}: pl4nted",
            "m\u{1ead}t kh\u{1ea9}u: pl4nted",
            "password for jane@hub: pl4nted",
            "Password (root): pl4nted",
            "the password is pl4nted",
            "passcode: pl4nted",
            "recovery code: pl4nted",
            "your PIN is 4711",
            "PIN: 4711",
        ] {
            let secret = if text.contains("4711") {
                "4711"
            } else {
                "pl4nted"
            };
            assert!(covers(text, secret), "{text}");
        }
    }

    #[test]
    fn what_is_said_of_passwords_stays() {
        for text in [
            "the password is too short",
            "Passwort: falsch gesetzt? nein",
            "das Kennwort ist falsch",
            "password required",
            "pin_memory: True, pin: 8",
            "sparse: 4711",
            "passwords are never printed",
            "claves and senhas",
        ] {
            let told = text.starts_with("Passwort:");
            assert!(told || find(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_word_at_the_end_of_a_line_asks() {
        for line in [
            "Password: ",
            "Kennwort:",
            "\u{5bc6}\u{7801}\u{ff1a}",
            "contrase\u{f1}a =",
        ] {
            assert!(asks(line), "{line}");
        }
        for line in ["Password: x", "no password", "seed:"] {
            assert!(!asks(line), "{line}");
        }
        assert!(AT_THE_END.is_some());
    }
}
