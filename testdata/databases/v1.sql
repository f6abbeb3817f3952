PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
INSERT INTO goose_db_version VALUES(1,0,1,'2026-11-21 18:10:18');
INSERT INTO goose_db_version VALUES(2,1,1,'2026-11-21 18:10:18');
CREATE TABLE tenants (
  tenant_id  TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO tenants VALUES('default','default',1795284620940150);
CREATE TABLE tasks (
  seq             INTEGER PRIMARY KEY,
  task_id         TEXT NOT NULL UNIQUE,
  tenant_id       TEXT NOT NULL,
  shard           INTEGER NOT NULL,
  status          TEXT NOT NULL,
  priority        INTEGER NOT NULL,
  queue           TEXT NOT NULL,
  name            TEXT NOT NULL,
  scheduled_at    INTEGER NOT NULL,
  due_at          INTEGER NOT NULL,
  run_at          INTEGER NOT NULL,
  miss_at         INTEGER,
  expires_at      INTEGER,
  claim_token     INTEGER NOT NULL,
  claim_term      INTEGER NOT NULL,
  claim_node      TEXT,
  picked_at       INTEGER,
  started_at      INTEGER,
  completed_at    INTEGER,
  next_attempt_at INTEGER,
  resolved_at     INTEGER,
  attempts        INTEGER NOT NULL,
  max_attempts    INTEGER NOT NULL,
  unresolved_dependencies_count INTEGER NOT NULL,
  lateness_us     INTEGER,
  sla_met         INTEGER,
  response_status INTEGER,
  exit_code       INTEGER,
  last_error      TEXT,
  skip_reason     TEXT,
  recurring_task_id TEXT,
  origin          TEXT,
  step            TEXT NOT NULL,
  plan_version    INTEGER NOT NULL,
  moved           INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  created_by      TEXT NOT NULL,
  batch_id        TEXT,
  idempotency_key TEXT,
  tracing_id      TEXT,
  labels          TEXT,
  target_type     TEXT NOT NULL,
  spec            TEXT NOT NULL
) STRICT;
INSERT INTO tasks VALUES(1,'01a1ff4d-4c1c-7aac-8f76-50929d09e498','default',61,'SKIPPED',1,'default','expired',1795284619268667,1795284619268667,1795284619268667,NULL,1795284620080788,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621064082,NULL,1795284621139492,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,'EXPIRED',NULL,NULL,'',0,0,1795284618268667,'cli',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["true"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(2,'01a1ff4d-57d0-70d9-8ec1-d72bd5b79beb','default',60,'SUCCESS',1,'default','done',1795284621264053,1795284621264053,1795284621264053,NULL,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621264133,1795284621265765,1795284621268134,NULL,NULL,1,3,0,1712,1,NULL,0,NULL,NULL,NULL,NULL,'',0,0,1795284621264053,'root (socket)',NULL,'order-1',NULL,'{"team":"ops"}','COMMAND','{"description":"one line of output","target_config":{"argv":["echo","héllo from an old version"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(3,'01a1ff4d-57dc-7487-a819-6787d5bf4665','default',60,'FAILED',1,'default','failed',1795284621276283,1795284621276283,1795284621276283,NULL,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621276391,1795284621279800,1795284621281014,NULL,NULL,1,1,0,3517,1,NULL,7,'exit code 7',NULL,NULL,NULL,'',0,0,1795284621276283,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"shell":"echo bad \u003e\u00262; exit 7","dir":"/"},"retry":{"max_attempts":1,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(4,'01a1ff4d-57ec-7bd7-892e-4cbfb37bb80e','default',4,'SUCCESS',1,'default','url',1795284621292740,1795284621292740,1795284621292740,NULL,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621292858,1795284621296381,1795284621297128,NULL,NULL,1,3,0,3641,1,200,NULL,NULL,NULL,NULL,NULL,'',0,0,1795284621292740,'root (socket)',NULL,NULL,NULL,NULL,'HTTP_CALLBACK','{"target_config":{"url":"http://127.0.0.1:18420/health","method":"GET"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(5,'01a1ff4d-57fa-7589-8fac-e7f2971d9c36','default',52,'CANCELLED',1,'default','cancelled',1795288221306346,1795288221306346,1795288221306346,NULL,NULL,0,0,NULL,NULL,NULL,1795284621348885,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,'cancelled by root (socket)',NULL,NULL,NULL,'',0,0,1795284621306346,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["true"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(6,'01a1ff4d-583c-7743-8975-bec6bd135b1a','default',15,'PENDING',0,'reports','later',3786955200000000,3786955200000000,3786955200000000,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'',0,0,1795284621372454,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","later"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(7,'01a1ff4d-5849-7eb0-bf6f-b5e943c24e86','default',57,'PENDING',1,'default','retrying',1795284621385918,1795284621385918,1795284685240430,NULL,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621385938,1795284621386567,NULL,1795284685240430,NULL,1,91,0,649,1,NULL,9,'exit code 9',NULL,NULL,NULL,'',0,0,1795284621385918,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"shell":"echo again; exit 9","dir":"/"},"retry":{"max_attempts":91,"backoff":"FIXED","base_delay_ms":60000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(8,'01a1ff4d-5855-767e-9ee5-224c50ec733b','default',1,'SUCCESS',1,'default','tick',1795284622397406,1795284622397406,1795284622397406,1795284682397406,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621398720,1795284622397544,1795284622404285,NULL,NULL,1,3,0,138,1,NULL,0,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(9,'01a1ff4d-5855-767e-84c1-2ece37695ded','default',1,'SUCCESS',1,'default','tick',1795284623397406,1795284623397406,1795284623397406,1795284683397406,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621398720,1795284623400539,1795284623403188,NULL,NULL,1,3,0,3133,1,NULL,0,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(10,'01a1ff4d-5855-767e-82a4-476ad79f5a35','default',1,'SUCCESS',1,'default','tick',1795284624397406,1795284624397406,1795284624397406,1795284684397406,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284622397579,1795284624397575,1795284624399625,NULL,NULL,1,3,0,169,1,NULL,0,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(11,'01a1ff4d-5855-767e-9cdf-5401e92cd75e','default',1,'SUCCESS',1,'default','tick',1795284625397406,1795284625397406,1795284625397406,1795284685397406,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284623400222,1795284625397841,1795284625399573,NULL,NULL,1,3,0,435,1,NULL,0,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(12,'01a1ff4d-5855-767e-932f-b075cde10fac','default',1,'SUCCESS',1,'default','tick',1795284626397406,1795284626397406,1795284626397406,1795284686397406,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284624397630,1795284626397545,1795284626399114,NULL,NULL,1,3,0,139,1,NULL,0,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(13,'01a1ff4d-5855-767e-8bd9-1defb0c026de','default',1,'SUCCESS',1,'default','tick',1795284627397406,1795284627397406,1795284627397406,1795284687397406,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284625399103,1795284627398256,1795284627401197,NULL,NULL,1,3,0,850,1,NULL,0,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(14,'01a1ff4d-5855-767e-af53-1e44d9a59238','default',1,'PENDING',1,'default','tick',1795284628397406,1795284628397406,1795284628397406,1795284688397406,NULL,5927411244037055,1,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284626398615,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(15,'01a1ff4d-5855-767e-ac49-5744c04be6ae','default',1,'PENDING',1,'default','tick',1795284629397406,1795284629397406,1795284629397406,1795284689397406,NULL,3301189173205402,1,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284627398578,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(16,'01a1ff4d-5855-767e-b1d7-11b2183ce055','default',1,'PENDING',1,'default','tick',1795284630397406,1795284630397406,1795284630397406,1795284690397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(17,'01a1ff4d-5855-767e-9a21-ddf01aef4780','default',1,'PENDING',1,'default','tick',1795284631397406,1795284631397406,1795284631397406,1795284691397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(18,'01a1ff4d-5855-767e-b09e-1769894bed85','default',1,'PENDING',1,'default','tick',1795284632397406,1795284632397406,1795284632397406,1795284692397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(19,'01a1ff4d-5855-767e-b66e-dfdb6ff62d40','default',1,'PENDING',1,'default','tick',1795284633397406,1795284633397406,1795284633397406,1795284693397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(20,'01a1ff4d-5855-767e-8769-1b6b7cec1acf','default',1,'PENDING',1,'default','tick',1795284634397406,1795284634397406,1795284634397406,1795284694397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(21,'01a1ff4d-5855-767e-bfb5-d610073ee88a','default',1,'PENDING',1,'default','tick',1795284635397406,1795284635397406,1795284635397406,1795284695397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(22,'01a1ff4d-5855-767e-a00c-eca8206f20ab','default',1,'PENDING',1,'default','tick',1795284636397406,1795284636397406,1795284636397406,1795284696397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(23,'01a1ff4d-5855-767e-aebe-40507f1294ef','default',1,'PENDING',1,'default','tick',1795284637397406,1795284637397406,1795284637397406,1795284697397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(24,'01a1ff4d-5855-767e-a70e-03908351c7f8','default',1,'PENDING',1,'default','tick',1795284638397406,1795284638397406,1795284638397406,1795284698397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(25,'01a1ff4d-5855-767e-b46c-10dc069d9425','default',1,'PENDING',1,'default','tick',1795284639397406,1795284639397406,1795284639397406,1795284699397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(26,'01a1ff4d-5855-767e-8ad0-2990abd49511','default',1,'PENDING',1,'default','tick',1795284640397406,1795284640397406,1795284640397406,1795284700397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(27,'01a1ff4d-5855-767e-abf7-c557264ee0a9','default',1,'PENDING',1,'default','tick',1795284641397406,1795284641397406,1795284641397406,1795284701397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(28,'01a1ff4d-5855-767e-9417-d7409cc3c21d','default',1,'PENDING',1,'default','tick',1795284642397406,1795284642397406,1795284642397406,1795284702397406,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','SCHEDULE','',1,0,1795284621397406,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(29,'01a1ff4d-585f-7c93-b2c5-34cbe34afdc5','default',12,'SUCCESS',1,'default','slow',1795284622407786,1795284622407786,1795284622407786,1795284682407786,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621410305,1795284622408224,1795284625409625,NULL,NULL,1,3,0,438,1,NULL,0,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(30,'01a1ff4d-585f-7c93-8b14-6913b383657e','default',12,'SKIPPED',1,'default','slow',1795284623407786,1795284623407786,1795284623407786,1795284683407786,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621410305,NULL,1795284623408186,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,'OVERLAP','01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(31,'01a1ff4d-585f-7c93-8d5a-236005be46d9','default',12,'SKIPPED',1,'default','slow',1795284624407786,1795284624407786,1795284624407786,1795284684407786,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284622407862,NULL,1795284624407844,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,'OVERLAP','01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(32,'01a1ff4d-585f-7c93-a66b-3ea82f96a146','default',12,'SKIPPED',1,'default','slow',1795284625407786,1795284625407786,1795284625407786,1795284685407786,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284623408229,NULL,1795284625407883,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,'OVERLAP','01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(33,'01a1ff4d-585f-7c93-b7cc-0908c293e64b','default',12,'RUNNING',1,'default','slow',1795284626407786,1795284626407786,1795284626407786,1795284686407786,NULL,2706351087695221,1,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284624410043,1795284626408294,NULL,NULL,NULL,1,3,0,508,1,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(34,'01a1ff4d-585f-7c93-bbc9-a7efa9233766','default',12,'SKIPPED',1,'default','slow',1795284627407786,1795284627407786,1795284627407786,1795284687407786,NULL,0,0,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284625407911,NULL,1795284627407884,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,'OVERLAP','01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(35,'01a1ff4d-585f-7c93-b956-b71f4e200a21','default',12,'PENDING',1,'default','slow',1795284628407786,1795284628407786,1795284628407786,1795284688407786,NULL,6793201316963362,1,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284626407867,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(36,'01a1ff4d-585f-7c93-8530-286eb3e7e2f7','default',12,'PENDING',1,'default','slow',1795284629407786,1795284629407786,1795284629407786,1795284689407786,NULL,3538818197456443,1,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284627407920,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(37,'01a1ff4d-585f-7c93-a61a-c3381a97522e','default',12,'PENDING',1,'default','slow',1795284630407786,1795284630407786,1795284630407786,1795284690407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(38,'01a1ff4d-585f-7c93-9690-7c4971720c06','default',12,'PENDING',1,'default','slow',1795284631407786,1795284631407786,1795284631407786,1795284691407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(39,'01a1ff4d-585f-7c93-87e8-026e0292d583','default',12,'PENDING',1,'default','slow',1795284632407786,1795284632407786,1795284632407786,1795284692407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(40,'01a1ff4d-585f-7c93-ab03-c8138e9c551f','default',12,'PENDING',1,'default','slow',1795284633407786,1795284633407786,1795284633407786,1795284693407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(41,'01a1ff4d-585f-7c93-8661-8931083e39a2','default',12,'PENDING',1,'default','slow',1795284634407786,1795284634407786,1795284634407786,1795284694407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(42,'01a1ff4d-585f-7c93-83cc-682e29c53f28','default',12,'PENDING',1,'default','slow',1795284635407786,1795284635407786,1795284635407786,1795284695407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(43,'01a1ff4d-585f-7c93-9052-1f7e78cce215','default',12,'PENDING',1,'default','slow',1795284636407786,1795284636407786,1795284636407786,1795284696407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(44,'01a1ff4d-585f-7c93-b251-1406de09b9d7','default',12,'PENDING',1,'default','slow',1795284637407786,1795284637407786,1795284637407786,1795284697407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(45,'01a1ff4d-585f-7c93-92ff-7dd84de6848b','default',12,'PENDING',1,'default','slow',1795284638407786,1795284638407786,1795284638407786,1795284698407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(46,'01a1ff4d-585f-7c93-a4d9-983045480900','default',12,'PENDING',1,'default','slow',1795284639407786,1795284639407786,1795284639407786,1795284699407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(47,'01a1ff4d-585f-7c93-8dcf-c90b542bee00','default',12,'PENDING',1,'default','slow',1795284640407786,1795284640407786,1795284640407786,1795284700407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(48,'01a1ff4d-585f-7c93-9ad2-0670f776e253','default',12,'PENDING',1,'default','slow',1795284641407786,1795284641407786,1795284641407786,1795284701407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(49,'01a1ff4d-585f-7c93-bb76-c903671c8093','default',12,'PENDING',1,'default','slow',1795284642407786,1795284642407786,1795284642407786,1795284702407786,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-585f-7bbd-8899-90b48119ca48','SCHEDULE','',1,0,1795284621407786,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"overlap":"SKIP"}');
INSERT INTO tasks VALUES(50,'01a1ff4d-586f-7cd4-a566-894f284a9dbb','default',8,'PENDING',1,'default','nightly',1795311000000000,1795311000000000,1795311000000000,1795311060000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-586f-7b95-8bef-faa737e04e21','SCHEDULE','',1,0,1795284621423802,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","nightly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(51,'01a1ff4d-586f-7cd4-ad67-0daf1a082fa3','default',8,'PENDING',1,'default','nightly',1795397400000000,1795397400000000,1795397400000000,1795397460000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-586f-7b95-8bef-faa737e04e21','SCHEDULE','',1,0,1795284621423802,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","nightly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(52,'01a1ff4d-586f-7cd4-b8c4-792d6fa628b7','default',8,'PENDING',1,'default','nightly',1795483800000000,1795483800000000,1795483800000000,1795483860000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-586f-7b95-8bef-faa737e04e21','SCHEDULE','',1,0,1795284621423802,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","nightly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(53,'01a1ff4d-586f-7cd4-9643-3379499af254','default',8,'PENDING',1,'default','nightly',1795570200000000,1795570200000000,1795570200000000,1795570260000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-586f-7b95-8bef-faa737e04e21','SCHEDULE','',1,0,1795284621423802,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","nightly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(54,'01a1ff4d-586f-7cd4-ba04-ff594687be55','default',8,'PENDING',1,'default','nightly',1795656600000000,1795656600000000,1795656600000000,1795656660000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-586f-7b95-8bef-faa737e04e21','SCHEDULE','',1,0,1795284621423802,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","nightly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(55,'01a1ff4d-586f-7cd4-b7ec-b48a18bae9c7','default',8,'PENDING',1,'default','nightly',1795743000000000,1795743000000000,1795743000000000,1795743060000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-586f-7b95-8bef-faa737e04e21','SCHEDULE','',1,0,1795284621423802,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","nightly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(56,'01a1ff4d-586f-7cd4-8bd5-fc4908fde1c0','default',8,'PENDING',1,'default','nightly',1795829400000000,1795829400000000,1795829400000000,1795829460000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-586f-7b95-8bef-faa737e04e21','SCHEDULE','',1,0,1795284621423802,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","nightly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(57,'01a1ff4d-586f-7cd4-ac22-016aa9b13a1b','default',8,'PENDING',1,'default','nightly',1795915800000000,1795915800000000,1795915800000000,1795915860000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-586f-7b95-8bef-faa737e04e21','SCHEDULE','',1,0,1795284621423802,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","nightly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(58,'01a1ff4d-586f-7cd4-b12b-6b37e2db61e6','default',8,'PENDING',1,'default','nightly',1796002200000000,1796002200000000,1796002200000000,1796002260000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-586f-7b95-8bef-faa737e04e21','SCHEDULE','',1,0,1795284621423802,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","nightly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(59,'01a1ff4d-586f-7cd4-bc9f-989f4573bf7f','default',8,'PENDING',1,'default','nightly',1796088600000000,1796088600000000,1796088600000000,1796088660000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-586f-7b95-8bef-faa737e04e21','SCHEDULE','',1,0,1795284621423802,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","nightly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(60,'01a1ff4d-587c-7887-9d0a-67d5644d1191','default',18,'PENDING',1,'default','hourly',1795287600000000,1795287600000000,1795287600000000,1795287660000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-587c-7745-af0a-18fe7bd78605','SCHEDULE','',1,0,1795284621436533,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","hourly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(61,'01a1ff4d-587c-7887-8cd0-c211db3f2b74','default',18,'PENDING',1,'default','hourly',1795291200000000,1795291200000000,1795291200000000,1795291260000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-587c-7745-af0a-18fe7bd78605','SCHEDULE','',1,0,1795284621436533,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","hourly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(62,'01a1ff4d-587c-7887-864b-f300878266f9','default',18,'PENDING',1,'default','hourly',1795294800000000,1795294800000000,1795294800000000,1795294860000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-587c-7745-af0a-18fe7bd78605','SCHEDULE','',1,0,1795284621436533,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","hourly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(63,'01a1ff4d-587c-7887-9e40-22648aad8d2e','default',18,'PENDING',1,'default','hourly',1795298400000000,1795298400000000,1795298400000000,1795298460000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-587c-7745-af0a-18fe7bd78605','SCHEDULE','',1,0,1795284621436533,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","hourly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(64,'01a1ff4d-587c-7887-a32a-e450d293eb6d','default',18,'PENDING',1,'default','hourly',1795302000000000,1795302000000000,1795302000000000,1795302060000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-587c-7745-af0a-18fe7bd78605','SCHEDULE','',1,0,1795284621436533,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","hourly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(65,'01a1ff4d-587c-7887-8caa-7f790ab44f8b','default',18,'PENDING',1,'default','hourly',1795305600000000,1795305600000000,1795305600000000,1795305660000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-587c-7745-af0a-18fe7bd78605','SCHEDULE','',1,0,1795284621436533,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","hourly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(66,'01a1ff4d-587c-7887-8959-6b81d91f02a2','default',18,'PENDING',1,'default','hourly',1795309200000000,1795309200000000,1795309200000000,1795309260000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-587c-7745-af0a-18fe7bd78605','SCHEDULE','',1,0,1795284621436533,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","hourly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(67,'01a1ff4d-587c-7887-be19-4e49a102d205','default',18,'PENDING',1,'default','hourly',1795312800000000,1795312800000000,1795312800000000,1795312860000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-587c-7745-af0a-18fe7bd78605','SCHEDULE','',1,0,1795284621436533,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","hourly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(68,'01a1ff4d-587c-7887-ba86-2fcfd148db80','default',18,'PENDING',1,'default','hourly',1795316400000000,1795316400000000,1795316400000000,1795316460000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-587c-7745-af0a-18fe7bd78605','SCHEDULE','',1,0,1795284621436533,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","hourly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(69,'01a1ff4d-587c-7887-94cf-467c9c09fd7e','default',18,'PENDING',1,'default','hourly',1795320000000000,1795320000000000,1795320000000000,1795320060000000,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,'01a1ff4d-587c-7745-af0a-18fe7bd78605','SCHEDULE','',1,0,1795284621436533,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","hourly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(70,'01a1ff4d-7080-7a5a-b5f4-7826cd6525f7','default',27,'PENDING',1,'default','soon',1795284657584647,1795284657584647,1795284657584647,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,0,3,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'',0,0,1795284627584647,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["echo","soon"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(71,'01a1ff4d-708b-710a-a13d-8d5d7ceec48d','default',25,'RUNNING',1,'default','running',1795284627595065,1795284627595065,1795284627595065,NULL,NULL,158194710447596,1,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284627595130,1795284627600358,NULL,NULL,NULL,1,3,0,5293,1,NULL,NULL,NULL,NULL,NULL,NULL,'',0,0,1795284627595065,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30}');
INSERT INTO tasks VALUES(72,'01a1ff4d-709d-78dd-9803-6aaf3aad6c7e','default',45,'RUNNING',1,'default','once',1795284627613554,1795284627613554,1795284627613554,NULL,NULL,1773950993686851,1,'01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284627613617,1795284627616971,NULL,NULL,NULL,1,1,0,3417,1,NULL,NULL,NULL,NULL,NULL,NULL,'',0,0,1795284627613554,'root (socket)',NULL,NULL,NULL,NULL,'COMMAND','{"target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":1,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_MOST_ONCE","timeout_seconds":300,"sla_seconds":30}');
CREATE TABLE recurring_tasks (
  seq               INTEGER PRIMARY KEY,
  recurring_task_id TEXT NOT NULL UNIQUE,
  tenant_id         TEXT NOT NULL,
  shard             INTEGER NOT NULL,
  status            TEXT NOT NULL,
  name              TEXT NOT NULL,
  plan_version      INTEGER NOT NULL,
  planned_through   INTEGER NOT NULL,
  plan_at           INTEGER,
  runs_count        INTEGER NOT NULL,
  completed_count   INTEGER NOT NULL,
  last_run_at       INTEGER,
  last_status       TEXT,
  paused_at         INTEGER,
  paused_until      INTEGER,
  pause_note        TEXT,
  created_at        INTEGER NOT NULL,
  created_by        TEXT NOT NULL,
  updated_at        INTEGER NOT NULL,
  idempotency_key   TEXT,
  spec              TEXT NOT NULL
) STRICT;
INSERT INTO recurring_tasks VALUES(1,'01a1ff4d-5855-75d0-aaed-7df8db7e4339','default',1,'ACTIVE','tick',1,1795284642397406,1795284632397406,6,6,1795284627398256,'SUCCESS',NULL,NULL,NULL,1795284621397406,'root (socket)',1795284621397406,NULL,'{"name":"tick","queue":"default","priority":"MEDIUM","target_type":"COMMAND","target_config":{"argv":["echo","tick"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"interval_seconds":1,"start_time":"2026-11-21T18:10:22.397406Z","catch_up_mode":"RUN_LATEST","misfire_after_seconds":60,"overlap_policy":"ALLOW"}');
INSERT INTO recurring_tasks VALUES(2,'01a1ff4d-585f-7bbd-8899-90b48119ca48','default',12,'ACTIVE','slow',1,1795284642407786,1795284632407786,1,1,1795284622408224,'SUCCESS',NULL,NULL,NULL,1795284621407786,'root (socket)',1795284621407786,NULL,'{"name":"slow","queue":"default","priority":"MEDIUM","target_type":"COMMAND","target_config":{"argv":["sleep","3"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"interval_seconds":1,"start_time":"2026-11-21T18:10:22.407786Z","catch_up_mode":"RUN_LATEST","misfire_after_seconds":60,"overlap_policy":"SKIP"}');
INSERT INTO recurring_tasks VALUES(3,'01a1ff4d-586f-7b95-8bef-faa737e04e21','default',8,'ACTIVE','nightly',1,1796088600000000,1795743000000000,0,0,NULL,NULL,NULL,NULL,NULL,1795284621423802,'root (socket)',1795284621423802,NULL,'{"name":"nightly","queue":"default","priority":"MEDIUM","target_type":"COMMAND","target_config":{"argv":["echo","nightly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"cron":"30 2 * * *","time_zone":"Europe/Berlin","catch_up_mode":"SKIP_MISSED","misfire_after_seconds":60,"overlap_policy":"ALLOW"}');
INSERT INTO recurring_tasks VALUES(4,'01a1ff4d-587c-7745-af0a-18fe7bd78605','default',18,'PAUSED','hourly',1,1795320000000000,1795323600000000,0,0,NULL,NULL,1795284621452603,NULL,'until the disk is replaced',1795284621436533,'root (socket)',1795284621452603,NULL,'{"name":"hourly","queue":"default","priority":"MEDIUM","target_type":"COMMAND","target_config":{"argv":["echo","hourly"],"dir":"/"},"retry":{"max_attempts":3,"backoff":"EXPONENTIAL","base_delay_ms":1000,"max_delay_ms":3600000},"delivery":"AT_LEAST_ONCE","timeout_seconds":300,"sla_seconds":30,"cron":"0 * * * *","time_zone":"Etc/UTC","catch_up_mode":"RUN_LATEST","misfire_after_seconds":60,"overlap_policy":"ALLOW"}');
CREATE TABLE attempts (
  tenant_id     TEXT NOT NULL,
  task_id       TEXT NOT NULL,
  number        INTEGER NOT NULL,
  state         TEXT NOT NULL,
  node          TEXT NOT NULL,
  picked_at     INTEGER,
  started_at    INTEGER NOT NULL,
  completed_at  INTEGER,
  duration_us   INTEGER NOT NULL,
  lateness_us   INTEGER NOT NULL,
  http_status   INTEGER,
  exit_code     INTEGER,
  error         TEXT,
  cpu_us        INTEGER NOT NULL,
  max_rss_bytes INTEGER NOT NULL,
  output_bytes  INTEGER NOT NULL,
  pgid          INTEGER,
  proc_start    INTEGER,
  boot_id       TEXT,
  PRIMARY KEY (task_id, number)
) STRICT, WITHOUT ROWID;
INSERT INTO attempts VALUES('default','01a1ff4d-57d0-70d9-8ec1-d72bd5b79beb',1,'SUCCESS','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621264133,1795284621265765,1795284621268134,2369,1712,NULL,0,NULL,835,0,27,15502,6103213,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-57dc-7487-a819-6787d5bf4665',1,'FAILED','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621276391,1795284621279800,1795284621281014,1214,3517,NULL,7,'exit code 7',803,0,4,15510,6103214,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-57ec-7bd7-892e-4cbfb37bb80e',1,'SUCCESS','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621292858,1795284621296381,1795284621297128,747,3641,200,NULL,NULL,0,0,16,NULL,NULL,NULL);
INSERT INTO attempts VALUES('default','01a1ff4d-5849-7eb0-bf6f-b5e943c24e86',1,'FAILED','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621385938,1795284621386567,1795284621388210,1643,649,NULL,9,'exit code 9',766,0,6,15553,6103225,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-5855-767e-82a4-476ad79f5a35',1,'SUCCESS','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284622397579,1795284624397575,1795284624399625,2050,169,NULL,0,NULL,1085,0,5,15717,6103526,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-5855-767e-84c1-2ece37695ded',1,'SUCCESS','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621398720,1795284623400539,1795284623403188,2649,3133,NULL,0,NULL,866,0,5,15655,6103426,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-5855-767e-8bd9-1defb0c026de',1,'SUCCESS','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284625399103,1795284627398256,1795284627401197,2941,850,NULL,0,NULL,1090,0,5,15748,6103826,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-5855-767e-932f-b075cde10fac',1,'SUCCESS','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284624397630,1795284626397545,1795284626399114,1569,139,NULL,0,NULL,807,0,5,15742,6103726,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-5855-767e-9cdf-5401e92cd75e',1,'SUCCESS','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284623400222,1795284625397841,1795284625399573,1732,435,NULL,0,NULL,923,0,5,15731,6103626,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-5855-767e-9ee5-224c50ec733b',1,'SUCCESS','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621398720,1795284622397544,1795284622404285,6741,138,NULL,0,NULL,877,0,5,15641,6103326,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-585f-7c93-b2c5-34cbe34afdc5',1,'SUCCESS','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284621410305,1795284622408224,1795284625409625,3001401,438,NULL,0,NULL,997,1794048,0,15642,6103327,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-585f-7c93-b7cc-0908c293e64b',1,'RUNNING','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284624410043,1795284626408294,NULL,0,508,NULL,NULL,NULL,0,0,0,15743,6103727,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-708b-710a-a13d-8d5d7ceec48d',1,'RUNNING','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284627595130,1795284627600358,NULL,0,5293,NULL,NULL,NULL,0,0,0,15798,6103846,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
INSERT INTO attempts VALUES('default','01a1ff4d-709d-78dd-9803-6aaf3aad6c7e',1,'RUNNING','01a1ff4d-5686-7df5-a68a-53cd672b088e',1795284627613617,1795284627616971,NULL,0,3417,NULL,NULL,NULL,0,0,0,15813,6103848,'a3ca8fa6-f089-49de-9e50-9a0f284e2e61');
CREATE TABLE outputs (
  tenant_id TEXT NOT NULL,
  task_id   TEXT NOT NULL,
  number    INTEGER NOT NULL,
  head      BLOB NOT NULL,
  tail      BLOB NOT NULL,
  total     INTEGER NOT NULL,
  PRIMARY KEY (task_id, number)
) STRICT;
INSERT INTO outputs VALUES('default','01a1ff4d-57d0-70d9-8ec1-d72bd5b79beb',1,X'68c3a96c6c6f2066726f6d20616e206f6c642076657273696f6e0a',X'',27);
INSERT INTO outputs VALUES('default','01a1ff4d-57dc-7487-a819-6787d5bf4665',1,X'6261640a',X'',4);
INSERT INTO outputs VALUES('default','01a1ff4d-57ec-7bd7-892e-4cbfb37bb80e',1,X'7b22737461747573223a226f6b227d0a',X'',16);
INSERT INTO outputs VALUES('default','01a1ff4d-5849-7eb0-bf6f-b5e943c24e86',1,X'616761696e0a',X'',6);
INSERT INTO outputs VALUES('default','01a1ff4d-5855-767e-9ee5-224c50ec733b',1,X'7469636b0a',X'',5);
INSERT INTO outputs VALUES('default','01a1ff4d-5855-767e-84c1-2ece37695ded',1,X'7469636b0a',X'',5);
INSERT INTO outputs VALUES('default','01a1ff4d-5855-767e-82a4-476ad79f5a35',1,X'7469636b0a',X'',5);
INSERT INTO outputs VALUES('default','01a1ff4d-5855-767e-9cdf-5401e92cd75e',1,X'7469636b0a',X'',5);
INSERT INTO outputs VALUES('default','01a1ff4d-5855-767e-932f-b075cde10fac',1,X'7469636b0a',X'',5);
INSERT INTO outputs VALUES('default','01a1ff4d-5855-767e-8bd9-1defb0c026de',1,X'7469636b0a',X'',5);
CREATE TABLE skips (
  tenant_id         TEXT NOT NULL,
  recurring_task_id TEXT NOT NULL,
  from_at           INTEGER NOT NULL,
  to_at             INTEGER NOT NULL,
  count             INTEGER NOT NULL,
  reason            TEXT NOT NULL,
  note              TEXT NOT NULL,
  recorded_at       INTEGER NOT NULL,
  PRIMARY KEY (recurring_task_id, from_at)
) STRICT, WITHOUT ROWID;
INSERT INTO skips VALUES('default','01a1ff4d-585f-7bbd-8899-90b48119ca48',1795284623407786,1795284623407786,1,'OVERLAP','',1795284623408186);
INSERT INTO skips VALUES('default','01a1ff4d-585f-7bbd-8899-90b48119ca48',1795284624407786,1795284624407786,1,'OVERLAP','',1795284624407844);
INSERT INTO skips VALUES('default','01a1ff4d-585f-7bbd-8899-90b48119ca48',1795284625407786,1795284625407786,1,'OVERLAP','',1795284625407883);
INSERT INTO skips VALUES('default','01a1ff4d-585f-7bbd-8899-90b48119ca48',1795284627407786,1795284627407786,1,'OVERLAP','',1795284627407884);
CREATE TABLE dependencies (
  tenant_id TEXT NOT NULL,
  child_id  TEXT NOT NULL,
  parent_id TEXT NOT NULL,
  type      TEXT NOT NULL,
  resolved  INTEGER NOT NULL,
  PRIMARY KEY (child_id, parent_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency_keys (
  tenant_id    TEXT NOT NULL,
  key          TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  resource_id  TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, key)
) STRICT, WITHOUT ROWID;
INSERT INTO idempotency_keys VALUES('default','order-1','b880878ab1893806848b9cae3b1997f6b6574586f783264b1649f945b1029e56','01a1ff4d-57d0-70d9-8ec1-d72bd5b79beb',1795284621264053);
CREATE TABLE tokens (
  token_hash TEXT NOT NULL PRIMARY KEY,
  tenant_id  TEXT NOT NULL,
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL,
  admin      INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE nodes (
  node_id     TEXT NOT NULL PRIMARY KEY,
  tenant_id   TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  address     TEXT NOT NULL,
  version     TEXT NOT NULL,
  boot_id     TEXT NOT NULL,
  started_at  INTEGER NOT NULL,
  seen_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO nodes VALUES('01a1ff4d-5686-7df5-a68a-53cd672b088e','system','01a1ff4d-568c-7267-b848-35ac0e98693f','127.0.0.1:18420','unreleased','a3ca8fa6-f089-49de-9e50-9a0f284e2e61',1795284620940150,1795284620940150);
CREATE TABLE shards (
  shard     INTEGER NOT NULL PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  node_id   TEXT NOT NULL,
  term      INTEGER NOT NULL,
  beat      INTEGER NOT NULL
) STRICT;
INSERT INTO shards VALUES(0,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(1,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(2,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(3,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(4,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(5,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(6,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(7,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(8,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(9,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(10,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(11,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(12,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(13,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(14,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(15,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(16,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(17,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(18,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(19,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(20,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(21,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(22,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(23,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(24,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(25,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(26,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(27,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(28,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(29,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(30,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(31,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(32,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(33,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(34,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(35,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(36,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(37,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(38,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(39,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(40,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(41,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(42,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(43,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(44,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(45,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(46,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(47,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(48,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(49,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(50,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(51,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(52,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(53,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(54,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(55,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(56,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(57,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(58,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(59,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(60,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(61,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(62,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
INSERT INTO shards VALUES(63,'system','01a1ff4d-5686-7df5-a68a-53cd672b088e',1,0);
CREATE TABLE batch_assert (
  tenant_id TEXT NOT NULL,
  ok        INTEGER NOT NULL
) STRICT;
CREATE TABLE applied_batch (
  id        INTEGER NOT NULL PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  token     INTEGER NOT NULL
) STRICT;
INSERT INTO applied_batch VALUES(1,'',5226187753923132174);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('goose_db_version',2);
CREATE INDEX tasks_due ON tasks (run_at, priority)
  WHERE status = 'PENDING' AND unresolved_dependencies_count = 0;
CREATE UNIQUE INDEX tasks_occurrence ON tasks (recurring_task_id, scheduled_at, origin, step)
  WHERE recurring_task_id IS NOT NULL;
CREATE INDEX tasks_rare ON tasks (status, seq)
  WHERE status IN ('RUNNING', 'FAILED', 'CANCELLED', 'SKIPPED');
CREATE INDEX tasks_finished ON tasks (completed_at)
  WHERE completed_at IS NOT NULL;
CREATE INDEX recurring_plan ON recurring_tasks (plan_at) WHERE plan_at IS NOT NULL;
CREATE INDEX recurring_name ON recurring_tasks (tenant_id, name);
CREATE INDEX dependencies_parent ON dependencies (parent_id, child_id);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
COMMIT;
