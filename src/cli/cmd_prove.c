/* etch prove: a statement about formulas, for all values that the spec allows. */
#include "cli_int.h"

#include <stdio.h>

static void print_plain(const etch_proof *proof)
{
    puts(etch_truth_name(proof->truth));
    for (size_t i = 0; i < proof->condition_count; i++)
        printf("where       %s\n", proof->conditions[i]);
    if (proof->truth == ETCH_YES)
        return;
    printf("left        %s\n", proof->left);
    printf("right       %s\n", proof->right);
    if (proof->difference)
        printf("difference  %s\n", proof->difference);
    if (!proof->left_value)
        return;
    for (size_t i = 0; i < proof->witness_count; i++)
        printf("%s%s = %s", i ? ", " : "witness     ", proof->witness[i].name, proof->witness[i].value);
    if (proof->witness_count > 0)
        printf(": left %s, right %s\n", proof->left_value, proof->right_value);
}

static bool print_json(const etch_proof *proof)
{
    bool failed = false;
    json_t *root = json_object(), *conditions = json_array();
    for (size_t i = 0; i < proof->condition_count; i++)
        cli_json_append(conditions, cli_json_text(proof->conditions[i]), &failed);
    cli_json_set(root, "schema", json_string("etch-prove/1"), &failed);
    cli_json_set(root, "statement", cli_json_text(proof->statement), &failed);
    cli_json_set(root, "verdict", cli_json_text(etch_truth_name(proof->truth)), &failed);
    cli_json_set(root, "conditions", conditions, &failed);
    cli_json_set(root, "left", cli_json_text(proof->left), &failed);
    cli_json_set(root, "right", cli_json_text(proof->right), &failed);
    cli_json_set(root, "difference", cli_json_text(proof->difference), &failed);
    if (proof->left_value) {
        json_t *witness = json_object();
        for (size_t i = 0; i < proof->witness_count; i++)
            cli_json_set(witness, proof->witness[i].name, cli_json_text(proof->witness[i].value), &failed);
        cli_json_set(root, "witness", witness, &failed);
        cli_json_set(root, "left_value", cli_json_text(proof->left_value), &failed);
        cli_json_set(root, "right_value", cli_json_text(proof->right_value), &failed);
    }
    return cli_print_json(root) && !failed;
}

cli_exit cli_prove(const cli_arguments *arguments)
{
    etch_status status;
    etch_session *session = cli_open(arguments, &status);
    const etch_proof *proof = NULL;
    if (status == ETCH_OK)
        status = etch_session_prove(session, arguments->words[1], &proof);
    const bool refuted = proof && status == ETCH_EINPUT;
    if (proof) {
        if (arguments->format == ETCH_PLAIN)
            print_plain(proof);
        else if (!print_json(proof))
            status = ETCH_ENOMEM;
    }
    /* a refutation is a result, no fault of the input that would have to be explained */
    cli_exit end = cli_close(arguments, session, refuted && status == ETCH_EINPUT ? ETCH_OK : status);
    return refuted && end == CLI_DONE ? CLI_INPUT : end;
}
