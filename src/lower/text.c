/* Pieces of the names of nodes: text in the making, in a place that is long enough. */
#include "lower/lower_int.h"

#include <string.h>

void etch_text_add(char *text, uint32_t *length, const char *bytes, uint32_t count)
{
    memcpy(text + *length, bytes, count);
    *length += count;
}

void etch_text_add_number(char *text, uint32_t *length, uint64_t number)
{
    char digits[20];
    uint32_t count = 0;
    do {
        digits[sizeof digits - ++count] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    etch_text_add(text, length, digits + sizeof digits - count, count);
}

void etch_text_add_word(char *text, uint32_t *length, const char *word)
{
    etch_text_add(text, length, word, (uint32_t)strlen(word));
}

const char *etch_type_word(uint8_t type)
{
    static const char *const words[] = {[ETCH_NODE_COMP] = "COMP_NODE",
                                        [ETCH_NODE_SEND] = "COMM_SEND_NODE",
                                        [ETCH_NODE_RECV] = "COMM_RECV_NODE",
                                        [ETCH_NODE_COLL] = "COMM_COLL_NODE"};
    return words[type];
}
