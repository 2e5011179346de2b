-- What was different in version 2 of the session database's schema, applied to version 3 of it.
-- SPDX-License-Identifier: Apache-2.0
DROP TABLE notice;
