/** A step that HBase's client has no words for. */
class Inexpressible extends RuntimeException {
  Inexpressible(String why) {
    super(why);
  }
}
