//! What a check found: how bad, in words, and what to do about it.

use serde::Serialize;

/// How bad a finding is. The worst of a report makes its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Looked at, and in order.
    Ok,
    /// Worth knowing; nothing has to be done.
    Note,
    /// Something will work worse than it could, or could not be looked at.
    Warning,
    /// A generation on this machine will fail, or not use the card.
    Error,
}

impl Severity {
    /// The word of JSON and screen.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

macro_rules! ids {
    ($($(#[$about_group:meta])* $group:ident = $group_word:literal {
        $($(#[$about:meta])* $id:ident = $word:literal,)*
    })*) => {
        /// What a finding is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Group {
            $($(#[$about_group])* $group,)*
        }

        impl Group {
            /// Every group, in the order of a report.
            pub const ALL: &'static [Self] = &[$(Self::$group,)*];

            /// The word of JSON and screen.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$group => $group_word,)* }
            }
        }

        /// Names a finding: a stable word for programs, documented in `docs/doctor.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Id {
            $($($(#[$about])* $id,)*)*
        }

        impl Id {
            /// Every id.
            pub const ALL: &'static [Self] = &[$($(Self::$id,)*)*];

            /// The word of JSON and screen.
            pub const fn word(self) -> &'static str {
                match self { $($(Self::$id => $word,)*)* }
            }

            /// Its group.
            pub const fn group(self) -> Group {
                match self { $($(Self::$id => Group::$group,)*)* }
            }
        }
    };
}

ids! {
    /// Where readings come from.
    Sources = "sources" {
        /// A source answers.
        SourceOk = "source_ok",
        /// A source does not exist on this machine.
        SourceAbsent = "source_absent",
        /// A source answers with errors.
        SourceFailing = "source_failing",
        /// A source does not answer.
        SourceNoAnswer = "source_no_answer",
        /// `/sys` is not there.
        SysMissing = "sys_missing",
        /// A check of this report gave no answer in its time.
        CheckNoAnswer = "check_no_answer",
    }
    /// The cards.
    Cards = "cards" {
        /// A card is read.
        CardOk = "card_ok",
        /// No card was found.
        NoCard = "no_card",
        /// A card sleeps and was not woken.
        CardAsleep = "card_asleep",
        /// An AMD card that the amdgpu driver does not hold.
        DriverNotBound = "driver_not_bound",
        /// The performance level is forced.
        PerfLevelForced = "perf_level_forced",
        /// The card was reset, or hung, a short while ago.
        CardWasReset = "card_was_reset",
        /// Two sources contradict each other.
        SourcesDisagree = "sources_disagree",
        /// An APU that may map only a part of the memory.
        TtmLimitLow = "ttm_limit_low",
    }
    /// Rights.
    Permissions = "permissions" {
        /// A device node may be opened.
        DeviceOk = "device_ok",
        /// There is no `/dev/kfd`.
        KfdMissing = "kfd_missing",
        /// `/dev/kfd` may not be opened.
        KfdNotAccessible = "kfd_not_accessible",
        /// There is no render node.
        RenderMissing = "render_missing",
        /// A render node may not be opened.
        RenderNotAccessible = "render_not_accessible",
        /// This is a container.
        Container = "container",
        /// This is WSL2.
        Wsl = "wsl",
    }
    /// Versions, as the interpreter of the user sees them.
    Versions = "versions" {
        /// The interpreter answered.
        PythonOk = "python_ok",
        /// The command names no interpreter that could be told.
        PythonGuessed = "python_guessed",
        /// There is no interpreter.
        PythonMissing = "python_missing",
        /// The interpreter did not answer in time.
        PythonNoAnswer = "python_no_answer",
        /// The interpreter answered with an error, or with something else.
        PythonFailed = "python_failed",
        /// The build of torch suits the card.
        TorchOk = "torch_ok",
        /// The interpreter has no torch.
        TorchMissing = "torch_missing",
        /// torch is built for another maker's cards, or for none.
        TorchWrongBuild = "torch_wrong_build",
        /// The libraries of torch have no kernels for the card.
        TorchLacksArch = "torch_lacks_arch",
        /// torch is older than what video models need.
        TorchOld = "torch_old",
        /// ROCm is older than what video models, or this card, need.
        RocmOld = "rocm_old",
    }
    /// MIOpen.
    Miopen = "miopen" {
        /// The library was found and read.
        MiopenOk = "miopen_ok",
        /// The library was not found.
        MiopenMissing = "miopen_missing",
        /// The library could not be read.
        MiopenUnreadable = "miopen_unreadable",
        /// There is more than one that may be loaded.
        MiopenSeveral = "miopen_several",
        /// A variable is set that the library does not contain.
        MiopenNameIgnored = "miopen_name_ignored",
        /// The profile sets a variable that the library does not contain.
        ProfileNameIgnored = "profile_name_ignored",
        /// A search times the naive kernel: newer versions leave it out.
        MiopenSearchLong = "miopen_search_long",
        /// Whether a find database for the card comes with it.
        MiopenFindDb = "miopen_find_db",
        /// Fast find saves little with this version and database.
        FastFindNeedless = "fast_find_needless",
    }
    /// The environment.
    Environment = "environment" {
        /// Nothing is wrong with it.
        EnvironmentOk = "environment_ok",
        /// A value that its library does not know.
        EnvBadValue = "env_bad_value",
        /// A variable that does nothing.
        EnvNoEffect = "env_no_effect",
        /// A `MIOPEN_` name that no examined version reads.
        EnvUnknownName = "env_unknown_name",
        /// A value whose name says more.
        EnvUnclear = "env_unclear",
        /// A find mode, or enforcement, that searches for long.
        FindSlow = "find_slow",
        /// The kernel cache is off.
        KernelCacheOff = "kernel_cache_off",
        /// `HSA_OVERRIDE_GFX_VERSION` names another family.
        GfxOverrideWrong = "gfx_override_wrong",
        /// `HSA_OVERRIDE_GFX_VERSION` changes nothing, or is not needed.
        GfxOverrideNeedless = "gfx_override_needless",
        /// `HSA_OVERRIDE_GFX_VERSION` is in use.
        GfxOverrideInUse = "gfx_override_in_use",
        /// Several variables choose the cards.
        VisibleDevicesStacked = "visible_devices_stacked",
        /// A variable hides every card.
        VisibleDevicesNone = "visible_devices_none",
        /// Several names of the allocator's options are set.
        AllocatorShadowed = "allocator_shadowed",
        /// An old name of the allocator's options.
        AllocatorDeprecated = "allocator_deprecated",
        /// A name of the allocator's options that this torch does not read.
        AllocatorUnread = "allocator_unread",
    }
    /// MIOpen's folders.
    Folders = "folders" {
        /// A folder is in order.
        FolderOk = "folder_ok",
        /// A folder does not exist yet.
        FolderAbsent = "folder_absent",
        /// A folder may not be written to.
        FolderNotWritable = "folder_not_writable",
        /// A folder lies on a network file system.
        FolderOnNetwork = "folder_on_network",
        /// Records whose best solver is the naive kernel.
        NaiveRecords = "naive_records",
        /// Lines of the find-db that are no records.
        BadRecords = "bad_records",
    }
    /// Room.
    Resources = "resources" {
        /// There is room.
        RoomOk = "room_ok",
        /// A disk is nearly full.
        DiskLow = "disk_low",
        /// A folder of the user may not be written to.
        PlaceNotWritable = "place_not_writable",
        /// Less memory is free than the profile asks for.
        RamBelowProfile = "ram_below_profile",
        /// Little memory is free.
        RamLow = "ram_low",
        /// There is no swap.
        NoSwap = "no_swap",
    }
    /// The command, and what it will do.
    Workload = "workload" {
        /// The profile that a run would take.
        ProfileChosen = "profile_chosen",
        /// A profile of the user that cannot be used.
        ProfileBroken = "profile_broken",
        /// The command's program, or its script, does not exist.
        CommandMissing = "command_missing",
        /// ComfyUI switches MIOpen off.
        ComfyuiMiopenOff = "comfyui_miopen_off",
        /// An option that makes torch tune every convolution.
        AutotuneOn = "autotune_on",
        /// torchvision cannot write a video, or FramePack has none.
        NoVideoWriter = "no_video_writer",
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its name.
    pub id: Id,
    /// What it is about.
    pub group: Group,
    /// How bad it is.
    pub severity: Severity,
    /// What was found, a sentence without a full stop.
    pub what: String,
    /// Why it matters, or what it was concluded from; absent where `what` says it all.
    pub why: Option<String>,
    /// The command, or the setting, that puts it right. Every warning and error has one.
    pub cure: Option<String>,
}

impl Finding {
    fn new(id: Id, severity: Severity, what: String, cure: Option<String>) -> Self {
        Self {
            id,
            group: id.group(),
            severity,
            what,
            why: None,
            cure,
        }
    }

    /// Something that is in order.
    pub(super) fn ok(id: Id, what: impl Into<String>) -> Self {
        Self::new(id, Severity::Ok, what.into(), None)
    }

    /// Something worth knowing.
    pub(super) fn note(id: Id, what: impl Into<String>) -> Self {
        Self::new(id, Severity::Note, what.into(), None)
    }

    /// Something that works worse than it could.
    pub(super) fn warning(id: Id, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(id, Severity::Warning, what.into(), Some(cure.into()))
    }

    /// Something that makes a generation fail.
    pub(super) fn error(id: Id, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(id, Severity::Error, what.into(), Some(cure.into()))
    }

    /// With its reason.
    #[must_use]
    pub(super) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// With what could be done, where nothing has to be.
    #[must_use]
    pub(super) fn cure(mut self, cure: impl Into<String>) -> Self {
        self.cure = Some(cure.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_are_those_of_json_and_differ() {
        for id in Id::ALL {
            assert_eq!(serde_json::to_value(id).unwrap(), id.word());
        }
        for group in Group::ALL {
            assert_eq!(serde_json::to_value(group).unwrap(), group.word());
        }
        let words: BTreeSet<_> = Id::ALL.iter().map(|id| id.word()).collect();
        assert_eq!(words.len(), Id::ALL.len());
    }
}
