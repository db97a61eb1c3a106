/*
 * The part of librocm_smi64 that is called here, declared in our own words.
 *
 * Only functions whose arguments have kept their shape from ROCm 5.2 to 7.x. Left
 * out for good, because their structs changed under the same name, so that a newer
 * library writes past the end of ours: the clock tables, gpu_metrics, PCIe bandwidth and
 * events. Nothing is included, so that libclang alone, without any headers, can read it.
 */
typedef __UINT32_TYPE__ uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;

/* What a call answers; further numbers exist and are passed on as they are. */
typedef enum {
  RSMI_STATUS_SUCCESS = 0,
  RSMI_STATUS_NOT_SUPPORTED = 2,
  RSMI_STATUS_UNKNOWN_ERROR = 0xFFFFFFFF
} rsmi_status_t;

typedef enum {
  RSMI_MEM_TYPE_VRAM = 0,
  RSMI_MEM_TYPE_GTT = 2
} rsmi_memory_type_t;

typedef enum {
  RSMI_TEMP_TYPE_EDGE = 0,
  RSMI_TEMP_TYPE_JUNCTION = 1,
  RSMI_TEMP_TYPE_MEMORY = 2
} rsmi_temperature_type_t;

typedef enum {
  RSMI_TEMP_CURRENT = 0
} rsmi_temperature_metric_t;

/* Of rsmi_dev_power_get: an average or a momentary value. */
typedef enum {
  RSMI_AVERAGE_POWER = 0,
  RSMI_CURRENT_POWER = 1,
  RSMI_INVALID_POWER = 0xFFFFFFFF
} RSMI_POWER_TYPE;

typedef struct {
  uint32_t major;
  uint32_t minor;
  uint32_t patch;
  const char *build;
} rsmi_version_t;

rsmi_status_t rsmi_init(uint64_t flags);
rsmi_status_t rsmi_num_monitor_devices(uint32_t *count);
rsmi_status_t rsmi_version_get(rsmi_version_t *version);
rsmi_status_t rsmi_status_string(rsmi_status_t status, const char **words);

/* Domain in the upper half; bus << 8 | device << 3 | function in the lower one. */
rsmi_status_t rsmi_dev_pci_id_get(uint32_t device, uint64_t *address);

/* Percent. */
rsmi_status_t rsmi_dev_busy_percent_get(uint32_t device, uint32_t *percent);
rsmi_status_t rsmi_dev_memory_busy_percent_get(uint32_t device, uint32_t *percent);

/* Microwatts. rsmi_dev_power_get exists from ROCm 6.0 on. */
rsmi_status_t rsmi_dev_power_ave_get(uint32_t device, uint32_t sensor, uint64_t *power);
rsmi_status_t rsmi_dev_power_get(uint32_t device, uint64_t *power, RSMI_POWER_TYPE *kind);
rsmi_status_t rsmi_dev_power_cap_get(uint32_t device, uint32_t sensor, uint64_t *cap);

/* Bytes. */
rsmi_status_t rsmi_dev_memory_total_get(uint32_t device, rsmi_memory_type_t pool, uint64_t *total);
rsmi_status_t rsmi_dev_memory_usage_get(uint32_t device, rsmi_memory_type_t pool, uint64_t *used);

/* Thousandths of a degree Celsius. */
rsmi_status_t rsmi_dev_temp_metric_get(uint32_t device, uint32_t sensor,
                                       rsmi_temperature_metric_t metric, int64_t *temperature);

/* Revolutions a minute. */
rsmi_status_t rsmi_dev_fan_rpms_get(uint32_t device, uint32_t sensor, int64_t *speed);
