//! Cookies, as browsers send them, as libraries of Python print them, and as files hold them.

use super::Kind;
use super::issued::classes;
use super::patterns::{Pattern, checked, is_value, pattern};

/// The patterns of this subject.
pub(super) fn patterns() -> Vec<Pattern> {
    let token = |regex, holds: fn(&str) -> bool| checked(Kind::Token, regex, holds);
    vec![
        // reprs: <SimpleCookie: a='b'>, <Morsel: a=b>, <RequestsCookieJar[<Cookie a=b for hub/>]>
        pattern(
            Kind::Token,
            r"(?i)<(?:[a-z]*cookies?[a-z]*|morsel)[:\[\s]+(?P<s>[^\r\n]{3,})>",
        ),
        // http.cookiejar: Cookie(version=0, name='a', value='b', port=None, …)
        pattern(
            Kind::Token,
            r#"(?i)\bcookie\([^\r\n]*?\bvalue\s*=\s*(?:"(?P<q>(?:[^"\\]|\\.)+)"|'(?P<d>(?:[^'\\]|\\.)+)')"#,
        ),
        // a header, a variable or a field of any name with cookie in it, to the end of its line
        token(
            r#"(?i)[a-z0-9_.-]*cookie[a-z0-9_]*(?:["'](?:\s*\]\s*=|\s*[,:=])|\s*(?:=>?|:))\s*(?P<s>[^\r\n]{3,})"#,
            is_cookie,
        ),
        // curl and yt-dlp
        token(
            r#"(?i)(?:^|[\s"'(])(?:-b|--cookies?(?:-[a-z]+)?)(?:=|\s+|["'],\s*)["']?(?P<s>[^\s"'=]+=[^\r\n"']+)"#,
            is_cookie,
        ),
        // a line of Netscape's cookies.txt
        pattern(
            Kind::Token,
            r"(?i)^\s*\S+\s+(?:TRUE|FALSE)\s+/\S*\s+(?:TRUE|FALSE)\s+\d+\s+\S+\s+(?P<s>\S+)",
        ),
        // a cookie as browsers export it: its attributes say that it is one
        pattern(
            Kind::Token,
            r#"(?i)["'](?:httponly|hostonly|samesite|domain|expiry|expires|expirationdate)["']\s*:[^{}\r\n]*?["']value["']\s*:\s*(?:"(?P<q>[^"\r\n]+)|'(?P<d>[^'\r\n]+))"#,
        ),
        pattern(
            Kind::Token,
            r#"(?i)["']value["']\s*:\s*(?:"(?P<q>[^"\r\n]+)"|'(?P<d>[^'\r\n]+)')[^{}\r\n]*?["'](?:httponly|hostonly|samesite|domain|expiry|expires|expirationdate)["']\s*:"#,
        ),
        // a dict, a list of pairs, keyword arguments: the name says that it is a session
        token(
            r#"(?i)["'](?:[a-z0-9_.-]*sess(?:ion)?(?:[_-]?(?:id|key))?|[a-z_.-]*sid|csrf[a-z_-]*|xsrf[a-z_-]*|jwt|auth[a-z_-]*|remember[a-z_-]*)["']\s*[:,=]\s*(?:"(?P<q>[^"\r\n]{4,})"|'(?P<d>[^'\r\n]{4,})')"#,
            is_value,
        ),
        token(
            r#"(?i)(?:^|[\s;"'({\[,&?])(?:[a-z0-9_.-]*sess(?:ion)?(?:[_-]?(?:id|key))?|[a-z_.-]*sid|csrf[a-z_-]*|xsrf[a-z_-]*|jwt|remember[a-z_-]*)=["']?(?P<s>[^\s;"'&,)}\]]{6,})"#,
            |s| is_value(s) && (classes(s) >= 2 || s.len() >= 16),
        ),
    ]
}

/// A path of a file of cookies and an empty jar hold none.
fn is_cookie(text: &str) -> bool {
    let bare = text.trim().trim_end_matches([')', ',', ';', '.']);
    is_value(bare) && !matches!(bare, "{}" | "[]" | "()" | "dict()" | "...")
}

#[cfg(test)]
mod tests {
    use super::super::patterns::{covers, find};

    #[test]
    fn a_cookie_is_found_however_python_prints_it() {
        for text in [
            "<SimpleCookie: sessionid='pl4nted'>",
            "<SimpleCookie: theme='dark' sid='pl4nted'> was sent",
            "<Morsel: sid=pl4nted; HttpOnly; Path=/>",
            "Set-Cookie: theme=dark; sid=pl4nted",
            "<Cookie sid=pl4nted for hub/>",
            "<RequestsCookieJar[<Cookie theme=dark for hub/>, <Cookie sid=pl4nted for hub/>]>",
            "<Cookies[<Cookie sid=pl4nted for hub.example.org />]>",
            "Cookie(version=0, name='sid', value='pl4nted', port=None, port_specified=False)",
            "<CookieJar[Cookie(version=0, name='a', value='b'), Cookie(version=0, name='sid', value='pl4nted')]>",
            "cookies={'a': 'b', 'c': 'pl4nted'}",
            "jar.cookies = [('a', 'pl4nted')]",
            "session_cookies: dict(a='pl4nted')",
            "headers: {'Accept': '*/*', 'Cookie': 'a=b; c=pl4nted'}",
            "[(b'cookie', b'a=pl4nted')]",
            "environ['HTTP_COOKIE'] = 'a=pl4nted'",
            "Set-Cookie3: a=\"pl4nted\"; path=\"/\"; domain=\"hub\"",
            "document.cookie = \"a=pl4nted\"",
            "curl -b 'a=pl4nted' https://hub",
            "yt-dlp --cookie a=pl4nted",
            ".hub.example.org\tTRUE\t/\tFALSE\t1780000000\ta\tpl4nted",
            "{'name': 'a', 'value': 'pl4nted', 'domain': 'hub', 'httpOnly': True}",
            "{\"domain\": \"hub\", \"expiry\": 1, \"name\": \"a\", \"value\": \"pl4nted\"}",
            "{'sessionid': 'pl4nted', 'theme': 'dark'}",
            "[('csrftoken', 'pl4nted')]",
            "PHPSESSID=pl4nted; connect.sid=s%3Aabc",
        ] {
            assert!(covers(text, "pl4nted"), "{text}");
        }
    }

    #[test]
    fn what_only_speaks_of_cookies_stays() {
        for text in [
            "this site uses cookies, and so do we",
            "cookies.txt was not found",
            "cookies={}",
            "send(x, cookies=None)",
            "cookie: not set",
            "aside=3 session=2 inside=false",
            "{'name': 'steps', 'value': '25'}",
        ] {
            assert_eq!(find(text), [], "{text}");
        }
    }
}
