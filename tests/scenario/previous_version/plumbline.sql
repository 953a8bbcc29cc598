BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0006');
CREATE TABLE calibrators (
	number INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	engine TEXT NOT NULL, 
	body JSON NOT NULL, estimator_version TEXT DEFAULT '' NOT NULL, version TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (number)
);
CREATE TABLE console_messages (
	id INTEGER NOT NULL, 
	channel TEXT NOT NULL, 
	thread INTEGER, 
	kind TEXT NOT NULL, 
	payload JSON NOT NULL, 
	intent TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	revision INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (intent), 
	UNIQUE (revision)
);
CREATE TABLE curated_answers (
	id TEXT NOT NULL, 
	expires_at DATETIME, 
	body JSON NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE deliveries (
	"key" TEXT NOT NULL, 
	received_at DATETIME NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "deliveries" VALUES('4409182aed:0:alertmanager:9ac5af45b6698f32130d2175d26711a7','2026-11-21 09:21:31.567077');
INSERT INTO "deliveries" VALUES('waiting:0:alertmanager:3b07fece8295f32fff65e01f7edea577','2026-11-21 09:21:36.352360');
CREATE TABLE incidents (
	id TEXT NOT NULL, 
	source TEXT NOT NULL, 
	group_key TEXT NOT NULL, 
	state TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	opened_at DATETIME NOT NULL, 
	platform TEXT, 
	channel TEXT, 
	message_id TEXT, 
	body JSON NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "incidents" VALUES('4409182aed','alertmanager','group','open',3,'2026-11-21 09:21:31.567077','slack','C0ASK','1600000000.000001','{"id": "4409182aed", "source": "alertmanager", "group_key": "group", "title": "till p99 latency above 2 s", "severity": "critical", "service": "till", "labels": {"alertname": "LatencyHigh", "service": "till", "severity": "critical"}, "alerts": [{"fingerprint": "a1", "name": "LatencyHigh", "status": "firing", "severity": "critical", "starts_at": "2026-11-21T09:17:31.551587Z", "service": "till", "summary": "till p99 latency above 2 s", "description": "Charges wait for a connection.", "labels": {"alertname": "LatencyHigh", "service": "till", "severity": "critical"}, "ends_at": null, "url": "http://prometheus.example/graph", "note": "", "acknowledged": null, "as_of": null}], "alert_count": 1, "delivery_count": 1, "started_at": "2026-11-21T09:17:31.551587Z", "opened_at": "2026-11-21T09:21:31.567077Z", "updated_at": "2026-11-21T09:21:31.567077Z", "place": {"platform": "slack", "channel": "C0ASK", "thread": null, "workspace": ""}, "state": "open", "stage": "looking for the cause", "progress": "", "resolved_at": null, "message": {"place": {"platform": "slack", "channel": "C0ASK", "thread": null, "workspace": ""}, "message_id": "1600000000.000001"}, "taken_by": "", "owner": {"owner": {"team_id": "payments", "team_name": "Payments", "score": 0.8786152142987104, "reasons": ["owned 3 of the 3 most similar incidents: OLD-1, OLD-2, OLD-3", "owns service till", "its document speaks of Charges, connection, till"]}, "candidates": [{"team_id": "payments", "team_name": "Payments", "score": 0.8786152142987104, "reasons": ["owned 3 of the 3 most similar incidents: OLD-1, OLD-2, OLD-3", "owns service till", "its document speaks of Charges, connection, till"]}], "on_call": ["Ada Quist"], "badge": {"strength": "strong", "probability": null, "outcomes": 0, "fitted_at": null}, "prediction_id": "owner:evidence:4409182aed", "votes": [{"round": 1, "voter": "payments", "choice": "payments", "reason": "Payments: owned 3 of the 3 most similar incidents: OLD-1, OLD-2, OLD-3; owns service till"}], "note": ""}, "explanation": null, "also_firing": [], "unseen_count": 0, "hops": [], "resolution": null, "reopened_count": 0, "also_in": [], "revision": 3}');
INSERT INTO "incidents" VALUES('waiting','alertmanager','another group','open',1,'2026-11-21 09:21:36.352360',NULL,NULL,NULL,'{"id": "waiting", "source": "alertmanager", "group_key": "another group", "title": "till p99 latency above 2 s", "severity": "critical", "service": "kiosk", "labels": {"alertname": "LatencyHigh", "service": "kiosk", "severity": "critical"}, "alerts": [{"fingerprint": "a1", "name": "LatencyHigh", "status": "firing", "severity": "critical", "starts_at": "2026-11-21T09:17:36.352288Z", "service": "kiosk", "summary": "till p99 latency above 2 s", "description": "Charges wait for a connection.", "labels": {"alertname": "LatencyHigh", "service": "kiosk", "severity": "critical"}, "ends_at": null, "url": "http://prometheus.example/graph", "note": "", "acknowledged": null, "as_of": null}], "alert_count": 1, "delivery_count": 1, "started_at": "2026-11-21T09:17:36.352288Z", "opened_at": "2026-11-21T09:21:36.352360Z", "updated_at": "2026-11-21T09:21:36.352360Z", "place": {"platform": "slack", "channel": "C0ASK", "thread": null, "workspace": ""}, "state": "open", "stage": "finding the owner", "progress": "", "resolved_at": null, "message": null, "taken_by": "", "owner": null, "explanation": null, "also_firing": [], "unseen_count": 0, "hops": [], "resolution": null, "reopened_count": 0, "also_in": [], "revision": 1}');
CREATE TABLE ingestions (
	source TEXT NOT NULL, 
	finished_at DATETIME NOT NULL, 
	documents INTEGER NOT NULL, 
	failure TEXT NOT NULL, 
	PRIMARY KEY (source)
);
INSERT INTO "ingestions" VALUES('handbook','2026-11-21 09:21:34.898832',5,'');
INSERT INTO "ingestions" VALUES('incidents','2026-11-21 09:21:34.913036',6,'');
INSERT INTO "ingestions" VALUES('curated','2026-11-21 09:21:34.955800',0,'');
CREATE TABLE outcomes (
	prediction_id TEXT NOT NULL, 
	labelled_by TEXT NOT NULL, 
	correct BOOLEAN NOT NULL, 
	labelled_at DATETIME NOT NULL, 
	comment TEXT NOT NULL, 
	PRIMARY KEY (prediction_id, labelled_by), 
	FOREIGN KEY(prediction_id) REFERENCES predictions (id)
);
CREATE TABLE posts (
	intent TEXT NOT NULL, 
	place JSON NOT NULL, 
	attempted BOOLEAN NOT NULL, 
	reference JSON, 
	content_hash TEXT NOT NULL, withdrawn BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (intent)
);
INSERT INTO "posts" VALUES('incident:4409182aed','{"platform": "slack", "channel": "C0ASK", "thread": null, "workspace": ""}',1,'{"place": {"platform": "slack", "channel": "C0ASK", "thread": null, "workspace": ""}, "message_id": "1600000000.000001"}','269f4e735da5312c23b7c8567b410a75',0);
CREATE TABLE predictions (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	engine TEXT NOT NULL, 
	made_at DATETIME NOT NULL, 
	body JSON NOT NULL, estimator_version TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "predictions" VALUES('owner:evidence:4409182aed','owner','evidence','2026-11-21 09:21:35.491379','{"id": "owner:evidence:4409182aed", "kind": "owner", "subject": "4409182aed", "value": "payments", "evaluation": {"coe": 1.0, "rce": 1.0}, "engine": "evidence", "estimator_version": "owner-evidence-2", "made_at": "2026-11-21T09:21:35.491379Z", "calibrator_version": null, "probability": null, "group": "payments", "references": ["OLD-1", "OLD-2", "OLD-3"]}','owner-evidence-2');
CREATE TABLE source_cursors (
	source TEXT NOT NULL, 
	position TEXT NOT NULL, 
	documents INTEGER NOT NULL, 
	PRIMARY KEY (source)
);
CREATE TABLE tasks (
	number INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	workflow TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	payload JSON NOT NULL, 
	claimed BOOLEAN NOT NULL, 
	started BOOLEAN NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE ("key")
);
INSERT INTO "tasks" VALUES(1,'ingest_knowledge:2026-11-21T09:21:31.473927','ingest_knowledge','ingest_knowledge','{}',1,1);
INSERT INTO "tasks" VALUES(2,'investigate_incident:4409182aed','investigate_incident','4409182aed','{}',1,1);
INSERT INTO "tasks" VALUES(3,'ingest_knowledge:2026-11-21T09:21:34.222174','ingest_knowledge','ingest_knowledge','{}',1,1);
INSERT INTO "tasks" VALUES(4,'investigate_incident:waiting','investigate_incident','waiting','{}',0,0);
CREATE TABLE teams_conversations (
	id TEXT NOT NULL, 
	reference JSON NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE turns (
	number INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	thread TEXT NOT NULL, 
	speaker TEXT NOT NULL, 
	text TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE ("key")
);
CREATE INDEX ix_console_messages_channel ON console_messages (channel, thread, id);
CREATE INDEX ix_console_messages_thread ON console_messages (thread);
CREATE INDEX ix_incidents_message ON incidents (channel, message_id);
CREATE INDEX ix_incidents_opened_at ON incidents (opened_at);
CREATE UNIQUE INDEX uq_incidents_open ON incidents (source, group_key) WHERE state = 'open';
CREATE INDEX ix_tasks_unstarted ON tasks (started, number);
CREATE INDEX ix_turns_thread ON turns (thread);
CREATE INDEX ix_predictions_estimator ON predictions (kind, engine, estimator_version, made_at);
CREATE INDEX ix_calibrators_version ON calibrators (version);
CREATE INDEX ix_curated_answers_expires_at ON curated_answers (expires_at);
CREATE INDEX ix_incidents_group ON incidents (source, group_key, opened_at);
COMMIT;
