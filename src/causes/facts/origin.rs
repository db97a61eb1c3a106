//! Where an exception was raised: the node, the node pack or extension, the package, the file.

use std::sync::LazyLock;

use regex::Regex;

/// A frame of a traceback of Python's, or of rich's.
static FRAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"^[\s|│]*(?:File "(?P<path>[^"]{1,300})", line \d+|(?P<rich>(?:/|[A-Z]:\\)[^:│]{1,250}\.py):\d+ in )"#,
    )
    .ok()
});
/// A node pack of ComfyUI, or an extension of a web UI.
static PACK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"[\\/](?:custom_nodes|extensions(?:-builtin)?)[\\/](?P<pack>[^\\/]{1,80})[\\/]")
        .ok()
});
/// An installed package.
static PACKAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"[\\/](?:site|dist)-packages[\\/](?P<package>[A-Za-z0-9_]{1,60})").ok()
});
/// A part of Python itself, or no file at all.
static PYTHON: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^<|[\\/]lib[\\/]python3|[\\/]Python3\d{1,2}[\\/](?i:lib)[\\/]").ok()
});
/// The node in ComfyUI's report of an error.
static NODE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\W{0,4}Node Type\W{1,6}(?P<node>[\w .()+-]{1,60}?)\**\s*$").ok()
});

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Origin {
    node: Option<String>,
    /// The innermost pack or extension.
    pack: Option<String>,
    /// The package of the innermost frame.
    package: Option<String>,
    /// The innermost file that belongs to no package.
    file: Option<String>,
    /// The next traceback follows from this one.
    chained: bool,
    /// This traceback follows from the one whose place is held.
    follows: bool,
}

impl Origin {
    /// Takes a line.
    pub(super) fn observe(&mut self, text: &str) {
        if text.contains("Traceback (most recent call last)") {
            self.follows = self.chained;
            self.chained = false;
            if !self.follows {
                *self = Self {
                    node: self.node.take(),
                    ..Self::default()
                };
            }
        } else if text.contains("During handling of the above exception")
            || text.contains("the direct cause of the following exception")
        {
            self.chained = true;
        } else if text.contains("Node Type") {
            let found = NODE.as_ref().and_then(|r| r.captures(text));
            self.node = found.map(|c| c["node"].trim().to_owned());
        } else if !self.follows && (text.contains("File \"") || text.contains(".py:")) {
            self.frame(text);
        }
    }

    fn frame(&mut self, text: &str) {
        let Some(found) = FRAME.as_ref().and_then(|r| r.captures(text)) else {
            return;
        };
        let path = found.name("path").or_else(|| found.name("rich"));
        let Some(path) = path.map(|m| m.as_str()) else {
            return;
        };
        let word = |r: &LazyLock<Option<Regex>>, name: &str| {
            let found = r.as_ref()?.captures(path)?;
            Some(found[name].to_owned())
        };
        self.package = word(&PACKAGE, "package");
        if self.package.is_some() || PYTHON.as_ref().is_some_and(|r| r.is_match(path)) {
            return;
        }
        self.pack = word(&PACK, "pack").or_else(|| self.pack.take());
        self.file = Some(short(path));
    }

    /// The words of a place.
    pub(super) fn place(&self, name: &str) -> Option<String> {
        match name {
            "node" => self.node.clone(),
            "pack" => self.pack.clone(),
            "package" => self.package.clone(),
            _ => self.file.clone(),
        }
    }
}

/// The end of a path: its file and two folders.
fn short(path: &str) -> String {
    let parts: Vec<&str> = path.split(['/', '\\']).collect();
    let from = parts.len().saturating_sub(3);
    parts.get(from..).unwrap_or_default().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Origin {
        let mut origin = Origin::default();
        for line in lines {
            origin.observe(line);
        }
        origin
    }

    const BEGINS: &str = "Traceback (most recent call last):";

    #[test]
    fn the_innermost_frame_names_the_place() {
        let o = of(&[
            BEGINS,
            "  File \"/opt/ComfyUI/execution.py\", line 5, in execute",
            "  File \"/opt/ComfyUI/custom_nodes/ComfyUI-X/nodes.py\", line 7, in run",
            "  File \"/opt/venv/lib/python3.12/site-packages/diffusers/models/a.py\", line 9, in f",
        ]);
        assert_eq!(o.place("pack").as_deref(), Some("ComfyUI-X"));
        assert_eq!(o.place("package").as_deref(), Some("diffusers"));
        assert_eq!(
            o.place("file").as_deref(),
            Some("custom_nodes/ComfyUI-X/nodes.py")
        );
        let o = of(&[
            BEGINS,
            "│/mnt/sdnext/modules/processing_diffusers.py:187 in process_base   │",
        ]);
        assert_eq!(
            o.place("file").as_deref(),
            Some("sdnext/modules/processing_diffusers.py")
        );
        assert_eq!(o.place("pack"), None);
    }

    #[test]
    fn of_chained_exceptions_the_first_counts() {
        let chained = [
            BEGINS,
            "  File \"C:\\ai\\wgp.py\", line 1, in a",
            "ValueError: x",
            "During handling of the above exception, another exception occurred:",
            BEGINS,
            "  File \"C:\\ai\\other.py\", line 1, in a",
        ];
        assert_eq!(of(&chained).place("file").as_deref(), Some("C:/ai/wgp.py"));
        let mut apart = chained.to_vec();
        apart.remove(3);
        assert_eq!(of(&apart).place("file").as_deref(), Some("C:/ai/other.py"));
        let report = of(&["- **Node Type:** SeedVR2VideoUpscaler"]);
        assert_eq!(
            report.place("node").as_deref(),
            Some("SeedVR2VideoUpscaler")
        );
    }
}
