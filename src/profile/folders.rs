//! The user's folders: what the XDG variables name, else their places below the home.

use std::ffi::OsString;
use std::path::PathBuf;

use etcetera::HomeDirError;

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// `$XDG_CONFIG_HOME`.
    Config,
    /// `$XDG_DATA_HOME`.
    Data,
    /// `$XDG_STATE_HOME`.
    State,
    /// `$XDG_CACHE_HOME`.
    Cache,
}

impl Base {
    /// The folder; it need not exist.
    ///
    /// # Errors
    /// When no variable names it and there is no home.
    pub fn folder(self) -> Result<PathBuf, HomeDirError> {
        self.of(|name| std::env::var_os(name), etcetera::home_dir)
    }

    /// A folder that is named needs no home: services and containers may have none. A relative
    /// one is to be ignored, as the specification says.
    fn of(
        self,
        variable: impl Fn(&str) -> Option<OsString>,
        home: impl Fn() -> Result<PathBuf, HomeDirError>,
    ) -> Result<PathBuf, HomeDirError> {
        let (name, below) = match self {
            Self::Config => ("XDG_CONFIG_HOME", ".config"),
            Self::Data => ("XDG_DATA_HOME", ".local/share"),
            Self::State => ("XDG_STATE_HOME", ".local/state"),
            Self::Cache => ("XDG_CACHE_HOME", ".cache"),
        };
        let named = variable(name).map(PathBuf::from);
        match named.filter(|path| path.is_absolute()) {
            Some(path) => Ok(path),
            None => Ok(home()?.join(below)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_folder_needs_no_home_and_the_rest_lies_below_it() {
        let none = || Err(HomeDirError);
        let home = || Ok(PathBuf::from("/h"));
        let named = |name: &str| (name == "XDG_DATA_HOME").then(|| "/d".into());
        assert_eq!(Base::Data.of(named, none).unwrap(), PathBuf::from("/d"));
        assert!(Base::State.of(named, none).is_err());
        for (base, want) in [
            (Base::Config, "/h/.config"),
            (Base::Data, "/d"),
            (Base::State, "/h/.local/state"),
            (Base::Cache, "/h/.cache"),
        ] {
            assert_eq!(base.of(named, home).unwrap(), PathBuf::from(want));
        }
        for strange in ["", "relative/folder"] {
            let found = Base::Data.of(|_| Some(strange.into()), home).unwrap();
            assert_eq!(found, PathBuf::from("/h/.local/share"), "{strange:?}");
        }
    }
}
