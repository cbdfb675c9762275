// Package host holds the few types and interfaces by which the embedded
// cluster's parts know one another: the master opens and closes regions on
// region servers, and a region server answers registry questions out of the
// cluster's view, without either importing the other.
//
// It contains no behaviour. Master, regionserver and the cluster's wiring
// import it; it imports only the store and the shared vocabulary (meta, cells).
package host
