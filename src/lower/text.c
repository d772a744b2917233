/* Pieces of the names of nodes: text in the making, in a place that is long enough. */
#include "lower/lower_int.h"

#include <string.h>

etch_word etch_word_of(const char *text)
{
    return (etch_word){text, (uint32_t)strlen(text)};
}

void etch_text_add(char *text, uint32_t *length, etch_word word)
{
    memcpy(text + *length, word.text, word.length);
    *length += word.length;
}

void etch_text_add_number(char *text, uint32_t *length, uint64_t number)
{
    char digits[20];
    uint32_t count = 0;
    do {
        digits[sizeof digits - ++count] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    etch_text_add(text, length, (etch_word){digits + sizeof digits - count, count});
}

const char *etch_type_word(uint8_t type)
{
    static const char *const words[] = {[ETCH_NODE_COMP] = "COMP_NODE",
                                        [ETCH_NODE_SEND] = "COMM_SEND_NODE",
                                        [ETCH_NODE_RECV] = "COMM_RECV_NODE",
                                        [ETCH_NODE_COLL] = "COMM_COLL_NODE"};
    return words[type];
}
