pub const RSMI_STATUS_SUCCESS: rsmi_status_t = 0;
pub const RSMI_STATUS_NOT_SUPPORTED: rsmi_status_t = 2;
pub const RSMI_STATUS_UNKNOWN_ERROR: rsmi_status_t = 4294967295;
pub type rsmi_status_t = ::core::ffi::c_uint;
pub const RSMI_MEM_TYPE_VRAM: rsmi_memory_type_t = 0;
pub const RSMI_MEM_TYPE_GTT: rsmi_memory_type_t = 2;
pub type rsmi_memory_type_t = ::core::ffi::c_uint;
pub const RSMI_TEMP_TYPE_EDGE: rsmi_temperature_type_t = 0;
pub const RSMI_TEMP_TYPE_JUNCTION: rsmi_temperature_type_t = 1;
pub const RSMI_TEMP_TYPE_MEMORY: rsmi_temperature_type_t = 2;
pub type rsmi_temperature_type_t = ::core::ffi::c_uint;
pub const RSMI_TEMP_CURRENT: rsmi_temperature_metric_t = 0;
pub type rsmi_temperature_metric_t = ::core::ffi::c_uint;
pub const RSMI_AVERAGE_POWER: RSMI_POWER_TYPE = 0;
pub const RSMI_CURRENT_POWER: RSMI_POWER_TYPE = 1;
pub const RSMI_INVALID_POWER: RSMI_POWER_TYPE = 4294967295;
pub type RSMI_POWER_TYPE = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct rsmi_version_t {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
    pub build: *const ::core::ffi::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rsmi_version_t"][::core::mem::size_of::<rsmi_version_t>() - 24usize];
    ["Alignment of rsmi_version_t"][::core::mem::align_of::<rsmi_version_t>() - 8usize];
    [
        "Offset of field: rsmi_version_t::major",
    ][::core::mem::offset_of!(rsmi_version_t, major) - 0usize];
    [
        "Offset of field: rsmi_version_t::minor",
    ][::core::mem::offset_of!(rsmi_version_t, minor) - 4usize];
    [
        "Offset of field: rsmi_version_t::patch",
    ][::core::mem::offset_of!(rsmi_version_t, patch) - 8usize];
    [
        "Offset of field: rsmi_version_t::build",
    ][::core::mem::offset_of!(rsmi_version_t, build) - 16usize];
};
pub struct RocmSmi {
    __library: ::libloading::Library,
    pub rsmi_init: Result<
        unsafe extern "C" fn(flags: u64) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_num_monitor_devices: Result<
        unsafe extern "C" fn(count: *mut u32) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_version_get: Result<
        unsafe extern "C" fn(version: *mut rsmi_version_t) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_status_string: Result<
        unsafe extern "C" fn(
            status: rsmi_status_t,
            words: *mut *const ::core::ffi::c_char,
        ) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_dev_pci_id_get: Result<
        unsafe extern "C" fn(device: u32, address: *mut u64) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_dev_busy_percent_get: Result<
        unsafe extern "C" fn(device: u32, percent: *mut u32) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_dev_memory_busy_percent_get: Result<
        unsafe extern "C" fn(device: u32, percent: *mut u32) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_dev_power_ave_get: Result<
        unsafe extern "C" fn(device: u32, sensor: u32, power: *mut u64) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_dev_power_get: Result<
        unsafe extern "C" fn(
            device: u32,
            power: *mut u64,
            kind: *mut RSMI_POWER_TYPE,
        ) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_dev_power_cap_get: Result<
        unsafe extern "C" fn(device: u32, sensor: u32, cap: *mut u64) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_dev_memory_total_get: Result<
        unsafe extern "C" fn(
            device: u32,
            pool: rsmi_memory_type_t,
            total: *mut u64,
        ) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_dev_memory_usage_get: Result<
        unsafe extern "C" fn(
            device: u32,
            pool: rsmi_memory_type_t,
            used: *mut u64,
        ) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_dev_temp_metric_get: Result<
        unsafe extern "C" fn(
            device: u32,
            sensor: u32,
            metric: rsmi_temperature_metric_t,
            temperature: *mut i64,
        ) -> rsmi_status_t,
        ::libloading::Error,
    >,
    pub rsmi_dev_fan_rpms_get: Result<
        unsafe extern "C" fn(device: u32, sensor: u32, speed: *mut i64) -> rsmi_status_t,
        ::libloading::Error,
    >,
}
impl RocmSmi {
    pub unsafe fn new<P>(path: P) -> Result<Self, ::libloading::Error>
    where
        P: AsRef<::std::ffi::OsStr>,
    {
        let path = path.as_ref();
        let library = unsafe { ::libloading::Library::new(path) }?;
        unsafe { Self::from_library(library) }
    }
    pub unsafe fn from_library<L>(library: L) -> Result<Self, ::libloading::Error>
    where
        L: Into<::libloading::Library>,
    {
        let __library = library.into();
        let rsmi_init = unsafe { __library.get(b"rsmi_init\0") }.map(|sym| *sym);
        let rsmi_num_monitor_devices = unsafe {
            __library.get(b"rsmi_num_monitor_devices\0")
        }
            .map(|sym| *sym);
        let rsmi_version_get = unsafe { __library.get(b"rsmi_version_get\0") }
            .map(|sym| *sym);
        let rsmi_status_string = unsafe { __library.get(b"rsmi_status_string\0") }
            .map(|sym| *sym);
        let rsmi_dev_pci_id_get = unsafe { __library.get(b"rsmi_dev_pci_id_get\0") }
            .map(|sym| *sym);
        let rsmi_dev_busy_percent_get = unsafe {
            __library.get(b"rsmi_dev_busy_percent_get\0")
        }
            .map(|sym| *sym);
        let rsmi_dev_memory_busy_percent_get = unsafe {
            __library.get(b"rsmi_dev_memory_busy_percent_get\0")
        }
            .map(|sym| *sym);
        let rsmi_dev_power_ave_get = unsafe {
            __library.get(b"rsmi_dev_power_ave_get\0")
        }
            .map(|sym| *sym);
        let rsmi_dev_power_get = unsafe { __library.get(b"rsmi_dev_power_get\0") }
            .map(|sym| *sym);
        let rsmi_dev_power_cap_get = unsafe {
            __library.get(b"rsmi_dev_power_cap_get\0")
        }
            .map(|sym| *sym);
        let rsmi_dev_memory_total_get = unsafe {
            __library.get(b"rsmi_dev_memory_total_get\0")
        }
            .map(|sym| *sym);
        let rsmi_dev_memory_usage_get = unsafe {
            __library.get(b"rsmi_dev_memory_usage_get\0")
        }
            .map(|sym| *sym);
        let rsmi_dev_temp_metric_get = unsafe {
            __library.get(b"rsmi_dev_temp_metric_get\0")
        }
            .map(|sym| *sym);
        let rsmi_dev_fan_rpms_get = unsafe { __library.get(b"rsmi_dev_fan_rpms_get\0") }
            .map(|sym| *sym);
        Ok(RocmSmi {
            __library,
            rsmi_init,
            rsmi_num_monitor_devices,
            rsmi_version_get,
            rsmi_status_string,
            rsmi_dev_pci_id_get,
            rsmi_dev_busy_percent_get,
            rsmi_dev_memory_busy_percent_get,
            rsmi_dev_power_ave_get,
            rsmi_dev_power_get,
            rsmi_dev_power_cap_get,
            rsmi_dev_memory_total_get,
            rsmi_dev_memory_usage_get,
            rsmi_dev_temp_metric_get,
            rsmi_dev_fan_rpms_get,
        })
    }
    pub unsafe fn rsmi_init(&self, flags: u64) -> rsmi_status_t {
        unsafe {
            (self.rsmi_init.as_ref().expect("Expected function, got error."))(flags)
        }
    }
    pub unsafe fn rsmi_num_monitor_devices(&self, count: *mut u32) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_num_monitor_devices
                .as_ref()
                .expect("Expected function, got error."))(count)
        }
    }
    pub unsafe fn rsmi_version_get(
        &self,
        version: *mut rsmi_version_t,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_version_get
                .as_ref()
                .expect("Expected function, got error."))(version)
        }
    }
    pub unsafe fn rsmi_status_string(
        &self,
        status: rsmi_status_t,
        words: *mut *const ::core::ffi::c_char,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_status_string
                .as_ref()
                .expect("Expected function, got error."))(status, words)
        }
    }
    pub unsafe fn rsmi_dev_pci_id_get(
        &self,
        device: u32,
        address: *mut u64,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_dev_pci_id_get
                .as_ref()
                .expect("Expected function, got error."))(device, address)
        }
    }
    pub unsafe fn rsmi_dev_busy_percent_get(
        &self,
        device: u32,
        percent: *mut u32,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_dev_busy_percent_get
                .as_ref()
                .expect("Expected function, got error."))(device, percent)
        }
    }
    pub unsafe fn rsmi_dev_memory_busy_percent_get(
        &self,
        device: u32,
        percent: *mut u32,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_dev_memory_busy_percent_get
                .as_ref()
                .expect("Expected function, got error."))(device, percent)
        }
    }
    pub unsafe fn rsmi_dev_power_ave_get(
        &self,
        device: u32,
        sensor: u32,
        power: *mut u64,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_dev_power_ave_get
                .as_ref()
                .expect("Expected function, got error."))(device, sensor, power)
        }
    }
    pub unsafe fn rsmi_dev_power_get(
        &self,
        device: u32,
        power: *mut u64,
        kind: *mut RSMI_POWER_TYPE,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_dev_power_get
                .as_ref()
                .expect("Expected function, got error."))(device, power, kind)
        }
    }
    pub unsafe fn rsmi_dev_power_cap_get(
        &self,
        device: u32,
        sensor: u32,
        cap: *mut u64,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_dev_power_cap_get
                .as_ref()
                .expect("Expected function, got error."))(device, sensor, cap)
        }
    }
    pub unsafe fn rsmi_dev_memory_total_get(
        &self,
        device: u32,
        pool: rsmi_memory_type_t,
        total: *mut u64,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_dev_memory_total_get
                .as_ref()
                .expect("Expected function, got error."))(device, pool, total)
        }
    }
    pub unsafe fn rsmi_dev_memory_usage_get(
        &self,
        device: u32,
        pool: rsmi_memory_type_t,
        used: *mut u64,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_dev_memory_usage_get
                .as_ref()
                .expect("Expected function, got error."))(device, pool, used)
        }
    }
    pub unsafe fn rsmi_dev_temp_metric_get(
        &self,
        device: u32,
        sensor: u32,
        metric: rsmi_temperature_metric_t,
        temperature: *mut i64,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_dev_temp_metric_get
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(device, sensor, metric, temperature)
        }
    }
    pub unsafe fn rsmi_dev_fan_rpms_get(
        &self,
        device: u32,
        sensor: u32,
        speed: *mut i64,
    ) -> rsmi_status_t {
        unsafe {
            (self
                .rsmi_dev_fan_rpms_get
                .as_ref()
                .expect("Expected function, got error."))(device, sensor, speed)
        }
    }
}
