/* cox-lab replay: a recorded session through other policies, and through its own again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"
#include "common/policies/registry.h"
#include "lab/arguments.h"
#include "lab/commands.h"
#include "lab/replay/job.h"
#include "lab/store/database.h"

#include <getopt.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_usage(FILE *to)
{
    fputs(
        "Usage: cox-lab replay [options] SESSION.db\n"
        "\n"
        "Estimates what other policies would have done in a recorded run. Simulates each recorded frame\n"
        "with the same devices, disturbances and noise.\n"
        "\n"
        "  --run N          run of the database (default: the last)\n"
        "  --base POLICY    replay only what this policy's sessions met (default: all policies' "
        "sessions)\n"
        "  --policy LIST    policies to replay, separated by commas (default: all)\n"
        "  --decisions      instead, give each recorded policy its recorded measurements again "
        "and compare\n"
        "                   its splits; exit status 3 if one differs\n"
        "  --csv, --json    print CSV or JSON instead of a table\n"
        "  -h, --help       print this text\n",
        to);
}

/* --- Arguments -------------------------------------------------------------------------------- */

static bool add_policies(struct replay_options *options, char *list)
{
    for (char *name = list; name;) {
        struct cox_policy policy;
        char names[256];

        char *comma = strchr(name, ',');
        if (comma)
            *comma = '\0';
        if (!lab_replay_policy(name, &policy))
            return lab_fail("--policy: unknown policy '%s'; policies: %s", name,
                            program_policy_names(names, sizeof names));

        bool known = false;
        for (uint32_t p = 0; p < options->policy_count; p++)
            known = known || strcmp(options->policies[p].name, name) == 0;
        if (!known && options->policy_count < REPLAY_POLICIES_MAX)
            options->policies[options->policy_count++] = policy;
        name = NULL;
        if (comma)
            name = comma + 1;
    }

    return true;
}

/* Returns an exit status to end with; negative = go on. */
static int parse(int argc, char **argv, struct replay_options *options)
{
    enum { OPT_RUN = 256, OPT_BASE, OPT_POLICY };
    int format = REPLAY_TABLE, decisions = 0;
    const struct option known[] = {{"run", required_argument, NULL, OPT_RUN},
                                   {"base", required_argument, NULL, OPT_BASE},
                                   {"policy", required_argument, NULL, OPT_POLICY},
                                   {"decisions", no_argument, &decisions, 1},
                                   {"csv", no_argument, &format, REPLAY_CSV},
                                   {"json", no_argument, &format, REPLAY_JSON},
                                   {"help", no_argument, NULL, 'h'},
                                   {NULL, 0, NULL, 0}};
    bool good = true;

    optind = 0; /* getopt starts over */
    for (int c; good && (c = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        if (c == 'h') {
            print_usage(stdout);
            return LAB_OK;
        }
        if (c == OPT_RUN)
            good = lab_read_run(optarg, &options->run);
        else if (c == OPT_BASE)
            options->base = optarg;
        else if (c == OPT_POLICY)
            good = add_policies(options, optarg);
        else
            good = c == 0;
    }

    if (good && argc - optind != 1)
        good = lab_fail("replay: one session database is needed, not %d", argc - optind);
    if (!good)
        return lab_refer_to_help("replay");

    options->path = argv[optind];
    options->format = (enum replay_format)format;
    options->decisions = decisions;

    return -1;
}

/* --- Decisions -------------------------------------------------------------------------------- */

static void print_json(struct json *json, const struct lab_replay_session *session,
                       const struct lab_replay_decisions *decisions)
{
    json_open_object(json, true);
    json_member_unsigned(json, "session", (uint64_t)session->session);
    json_member_string(json, "policy", session->policy);
    json_member_bool(json, "taped", decisions->taped);
    json_member_bool(json, "complete", decisions->complete);
    json_member_unsigned(json, "splits", decisions->splits);
    json_member_unsigned(json, "grants", decisions->grants);
    json_member_unsigned(json, "different", decisions->different);
    json_close_object(json);
}

static void print_text(const struct lab_replay_session *session,
                       const struct lab_replay_decisions *decisions)
{
    printf("session %" PRId64 ", %s: ", session->session, session->policy);
    if (!decisions->taped) {
        puts("decisions were not recorded");
        return;
    }

    printf("%" PRIu64 " splits, %" PRIu64 " grants%s: ", decisions->splits, decisions->grants,
           decisions->complete ? "" : " before a gap in the recording");
    if (decisions->different == 0)
        puts("all the same");
    else
        printf("%" PRIu64 " different, first in frame %" PRIu64
               "\n  recorded: %s\n  now:      %s\n",
               decisions->different, decisions->first_frame, decisions->recorded,
               decisions->answered);
}

static void print_decisions(const struct replay_job *job, const struct lab_replay_session *session,
                            const struct lab_replay_decisions *decisions, struct json *json)
{
    if (job->options->format == REPLAY_JSON)
        print_json(json, session, decisions);
    else if (job->options->format == REPLAY_CSV)
        printf("%" PRId64 ",%s,%d,%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", session->session,
               session->policy, decisions->taped, decisions->complete, decisions->splits,
               decisions->grants, decisions->different);
    else
        print_text(session, decisions);
}

/* Whether --base and --policy select the session. */
static bool is_selected(const struct replay_job *job, const struct lab_replay_session *session)
{
    const struct replay_options *options = job->options;
    if (session->kind != LAB_REPLAY_POLICY ||
        (options->base && strcmp(options->base, session->policy) != 0))
        return false;

    for (uint32_t p = 0; p < options->policy_count; p++)
        if (strcmp(options->policies[p].name, session->policy) == 0)
            return true;

    return options->policy_count == 0;
}

static int decide(const struct replay_job *job)
{
    struct json json;
    uint64_t asked = 0, different = 0;
    bool good = true;

    if (job->options->format == REPLAY_CSV)
        puts("session,policy,taped,complete,splits,grants,different");
    if (job->options->format == REPLAY_JSON) {
        json_begin(&json, stdout);
        json_open_array(&json, false);
    }

    for (size_t s = 0; s < job->data->session_count && good; s++) {
        const struct lab_replay_session *session = &job->data->sessions[s];
        struct cox_policy policy;
        struct lab_replay_decisions decisions;
        char why[REPLAY_WHY_MAX];

        if (!is_selected(job, session) || !lab_replay_policy(session->policy, &policy))
            continue;

        good = lab_replay_decide(job->db, session, &policy, &decisions, why, sizeof why);
        if (!good) {
            lab_fail("%s: %s", job->options->path, why);
            continue;
        }

        print_decisions(job, session, &decisions, &json);
        asked += decisions.splits;
        different += decisions.different;
    }

    if (job->options->format == REPLAY_JSON) {
        json_close_array(&json);
        json_end(&json);
    }
    if (good && asked == 0)
        good = lab_fail("%s: run %" PRId64 " has no recorded decisions", job->options->path,
                        job->data->run);
    if (!good)
        return LAB_BAD;
    if (different > 0)
        return LAB_MISSED;

    return LAB_OK;
}

int lab_replay_main(int argc, char **argv)
{
    struct replay_options options = {0};
    char why[REPLAY_WHY_MAX];

    int result = parse(argc, argv, &options);
    if (result >= 0)
        return result;

    struct replay_job *job = calloc(1, sizeof *job);
    if (!job) {
        lab_fail("out of memory");
        return LAB_BAD;
    }

    job->options = &options;
    result = LAB_BAD;
    if (!lab_store_open_to_read(options.path, &job->db, why, sizeof why))
        lab_fail("%s", why);
    else if (!lab_replay_read(job->db, options.run, &job->data, why, sizeof why))
        lab_fail("%s: %s", options.path, why);
    else if (options.decisions)
        result = decide(job);
    else
        result = lab__replay_policies(job);

    lab_replay_free(&job->data);
    sqlite3_close(job->db);
    free(job);

    return lab_output_written() ? result : LAB_BAD;
}
