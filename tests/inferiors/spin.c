/* A loop of C that does not end, as of an engine's own code that polls a flag. */
static volatile int flag;

void spin_in_c(void) {
    while (!flag) {
    }
}
