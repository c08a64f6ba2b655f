// Responsiveness server of the Go standard library: an HTTP/2 server that is not linerate's. It prints its address and the pin of its
// key.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"
)

func config(w http.ResponseWriter, r *http.Request) {
	base := "https://" + r.Host
	fmt.Fprintf(w, `{"version":1,"urls":{"small_https_download_url":"%s/small",`, base)
	fmt.Fprintf(w, `"large_https_download_url":"%s/large","https_upload_url":"%s/upload"}}`, base, base)
}

func large(w http.ResponseWriter, r *http.Request) {
	block := make([]byte, 64<<10)
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func main() {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	public, _ := x509.MarshalPKIXPublicKey(&key.PublicKey)
	pin := sha256.Sum256(public)
	http.HandleFunc("/config", config)
	http.HandleFunc("/large", large)
	http.HandleFunc("/small", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("x")) })
	http.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	// Refusals that a client has to explain.
	http.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "https://192.0.2.1/config", 302) })
	http.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"version":1,"urls":{"small_download_url":"https://192.0.2.1/","large_download_url":"https://192.0.2.1/",`)
		fmt.Fprint(w, `"upload_url":"https://192.0.2.1/"}}`)
	})
	http.HandleFunc("/huge", large)
	http.HandleFunc("/silent", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	http.HandleFunc("/reset", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	http.HandleFunc("/text", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>") })
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s sha256//%s\n", listener.Addr(), base64.StdEncoding.EncodeToString(pin[:]))
	settings := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	server := &http.Server{TLSConfig: settings}
	if len(os.Args) > 2 && os.Args[2] == "http1" {
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	server.ServeTLS(listener, "", "")
}
