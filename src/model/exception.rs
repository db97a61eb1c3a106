//! What the name of an exception says, wherever it was printed.

/// Whether a user's own wish to end the job shows up as this exception: `text` begins with the
/// name of its class, which may have its modules before it.
pub fn is_interrupt(text: &str) -> bool {
    let class = class(text);
    ["interrupt", "cancelled", "canceled"]
        .iter()
        .any(|word| class.contains(word))
        || ["abort", "aborted", "aborterror", "abortedexception"].contains(&class.as_str())
}

/// Whether a client has closed its connection before the answer: no fault of the job.
pub fn is_client_gone(text: &str) -> bool {
    [
        "brokenpipeerror",
        "connectionreseterror",
        "connectionabortederror",
        "clientdisconnect",
        "clientdisconnected",
    ]
    .contains(&class(text).as_str())
}

/// Files of web servers: a frame in one says that a request is answered.
const SERVERS: [&str; 12] = [
    "uvicorn/",
    "starlette/",
    "asyncio/",
    "aiohttp/",
    "h11/",
    "hypercorn/",
    "werkzeug/",
    "websockets/",
    "gradio/routes",
    "gradio/queueing",
    "/socketserver.py",
    "/http/server.py",
];

/// Whether a frame of a traceback lies in a web server; the path may have the separators of Windows.
pub fn is_server_frame(text: &str) -> bool {
    let unix = text.replace('\\', "/");
    SERVERS.iter().any(|file| unix.contains(file))
}

/// The name of the class without its module, in lower case.
fn class(text: &str) -> String {
    let name = text.trim_start().split([':', '(', ' ']).next();
    let name = name.unwrap_or_default().rsplit('.').next();
    name.unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_servers() {
        for path in [
            "/x/site-packages/uvicorn/protocols/http/h11_impl.py",
            "C:\\Python312\\Lib\\asyncio\\proactor_events.py",
            "/usr/lib/python3.11/socketserver.py",
            "/x/gradio/queueing.py",
        ] {
            assert!(is_server_frame(path), "{path}");
        }
        assert!(!is_server_frame("/x/gradio/components/video.py"));
        assert!(!is_server_frame("/opt/ComfyUI/server.py"));
    }

    #[test]
    fn an_end_that_the_user_wished() {
        for text in [
            "KeyboardInterrupt",
            "asyncio.exceptions.CancelledError",
            "concurrent.futures._base.CancelledError: x",
            "jobs.Cancelled: by the user",
            "GenerationInterrupted: stop",
            "comfy.model_management.InterruptProcessingException",
            "UserInterruptError",
        ] {
            assert!(is_interrupt(text) && !is_client_gone(text), "{text}");
        }
        for text in [
            "RuntimeError: the stream was cancelled by the driver",
            "ConnectionAbortedError: [WinError 10053]",
            "RuntimeError: Aborted",
            "",
        ] {
            assert!(!is_interrupt(text), "{text}");
        }
    }

    #[test]
    fn a_client_that_left() {
        for text in [
            "BrokenPipeError: [Errno 32] Broken pipe",
            "ConnectionResetError: [Errno 104] Connection reset by peer",
            "starlette.requests.ClientDisconnect",
        ] {
            assert!(is_client_gone(text), "{text}");
        }
        assert!(!is_client_gone("requests.exceptions.ConnectionError: x"));
    }
}
