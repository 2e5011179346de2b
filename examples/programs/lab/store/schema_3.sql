-- What was different in version 3 of the session database's schema, applied to version 4 of it.
-- SPDX-License-Identifier: Apache-2.0
DROP TABLE setting;
DROP TABLE telemetry_session;
DROP TABLE telemetry;
DROP TABLE telemetry_source;
