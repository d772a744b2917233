/* A network that is built in C: two layers with a loss, trained with AdamW on data-parallel ranks.
 *
 *     cc network.c $(pkg-config --cflags --libs --static etch) -o network */
#include <etch/builder.h>
#include <etch/etch.h>

#include <stdio.h>

/* What the spec says: sizes, how the model is trained, how it is placed. */
static const char spec[] = "etch 1\n"
                           "param batch, width, hidden, classes\n"
                           "dim B = batch, X = width, H = hidden, C = classes\n"
                           "train { model = classifier, optimizer = adamw(master = true) }\n"
                           "parallel ddp { mesh [dp]; shard B @ dp }\n";

enum { MAX_RANK = 2 };

/* relu(x * w + b): from dim `from` to dim `to`. */
static etch_tensor *layer(etch_network *net, etch_tensor *x, etch_dim *batch, etch_dim *from, etch_dim *to)
{
    etch_network_enter(net, "layer");
    etch_tensor *in = etch_network_pass_in(net, x, "x");
    etch_tensor *w = etch_network_weight(net, "w", NULL, 2, (etch_dim *[MAX_RANK]){from, to});
    etch_tensor *b = etch_network_weight(net, "b", NULL, 1, &to);
    etch_tensor *y = etch_network_multiply(net, in, w, 2, (etch_dim *[MAX_RANK]){batch, to});
    y = etch_network_add(net, y, b);
    y = etch_network_call(net, "relu", 1, &y, 0, NULL);
    y = etch_network_pass_out(net, y, "y");
    etch_network_leave(net);
    return y;
}

static void build(etch_network *net, void *data)
{
    (void)data;
    etch_dim *batch = etch_network_dim(net, "B"), *width = etch_network_dim(net, "X");
    etch_dim *hidden = etch_network_dim(net, "H"), *classes = etch_network_dim(net, "C");
    etch_tensor *x = etch_network_input(net, "x", NULL, 2, (etch_dim *[MAX_RANK]){batch, width});
    etch_tensor *labels = etch_network_input(net, "labels", "i32", 1, &batch);
    etch_tensor *logits = layer(net, layer(net, x, batch, width, hidden), batch, hidden, classes);
    etch_tensor *loss =
        etch_network_call(net, "cross_entropy", 2, (etch_tensor *[]){logits, labels}, 1,
                          &(etch_network_argument){.name = "over", .dims = &classes, .dim_count = 1});
    etch_network_name(net, loss, "l");
    etch_network_tag(net, loss, "loss");
}

static etch_status ask(etch_session *session, const char *expression)
{
    const etch_answer *answer;
    etch_status status = etch_session_query(session, expression, NULL, &answer);
    if (status == ETCH_OK)
        printf("%-28s %s\n", expression, answer->amount.text);
    return status;
}

int main(void)
{
    static const char *const questions[] = {"params(model)", "matmul_flops(forward)",
                                            "matmul_flops(backward)", "comm(step)"};
    const etch_network_model model = {.name = "classifier", .build = build};
    const etch_session_options options = {
        .struct_size = sizeof options, .text = spec, .models = &model, .model_count = 1, .plan = "ddp"};
    etch_session *session;
    etch_status status = etch_session_open(&options, &session);
    for (size_t i = 0; i < sizeof questions / sizeof *questions && status == ETCH_OK; i++)
        status = ask(session, questions[i]);
    if (session)
        fputs(etch_session_message_text(session), stderr);
    etch_session_close(session);
    return (int)status;
}
